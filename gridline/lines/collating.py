"""Collating: the sealed results of all partitions, and the refused lines, as output and error files in input order.

A batch is collated once. The first call fixes why missing lines are missing, and every call writes the same
bytes from the same manifests, so two at once or one after a crash make one pair of files.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from heapq import merge
from typing import BinaryIO

from gridline.errors import InvariantBroken
from gridline.lines.partitions import read_ids
from gridline.lines.request_rows import RequestRow, RequestRows
from gridline.lines.results import missing_line, missing_status, response_line
from gridline.lines.sealing import read_manifest
from gridline.lines.segments import ResultRow, iterate_rows, read_rows
from gridline.storage import layout
from gridline.storage.objects import ObjectWriter, Store

FORMAT = 1


@dataclass(frozen=True)
class FilePart:
    """A written result file."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Collation:
    """The figures of a batch's result files. Only delivered lines count tokens."""

    total: int
    completed: int
    failed: int
    cancelled: int
    input_tokens: int
    output_tokens: int
    usage_by_model: dict[str, list[int]]
    """By model: lines delivered, input tokens, output tokens."""
    output: FilePart | None
    error: FilePart | None
    cause: str
    """The code that lines without a result got, or would have got: the first call's."""


@dataclass(frozen=True)
class _Line:
    """One line of a result file, with what it counts for."""

    number: int
    content: bytes
    code: str | None
    custom_id: str
    status_code: int | None = None
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0

    def logged(self) -> RequestRow:
        """What the request log keeps of it."""
        return RequestRow(
            self.number, self.custom_id, self.model, self.status_code, self.code, self.input_tokens, self.output_tokens
        )  # fmt: skip


def collate(
    store: Store,
    *,
    batch_id: str,
    account_id: str,
    partitions: Sequence[int],
    output_key: str,
    error_key: str,
    missing: tuple[str, str],
) -> Collation:
    """Write output and error file (each only if it has a line) and say what they hold.

    ``missing`` is code and message for lines without a result: ``batch_expired`` and ``batch_cancelled``
    lines never ran, ``server_error`` lines are answered with 500. ``account_id`` owns both keys. What a
    request log keeps of each line is left beside them.

    Raises:
        InvariantBroken: a partition is not sealed, or a key is not the account's.
        ObjectMissing: an object of the batch is gone.
    """
    standing = store.read_or_none(layout.collation_key(batch_id))
    if standing is not None:
        return _read(standing)
    for key in (output_key, error_key):
        if not key.startswith(layout.file_key(account_id, "")):
            raise InvariantBroken(f"{key} is not a file of {account_id}.")
    code, message = _fixed_cause(store, batch_id, missing)
    figures, rows = _Figures(), RequestRows()
    with ExitStack() as stack:
        output, error = _File(store, output_key, stack), _File(store, error_key, stack)
        accepted = _partition_lines(store, batch_id, partitions, (code, message))
        for line in merge(_refused_lines(store, batch_id), accepted, key=lambda one: one.number):
            figures.add(line)
            rows.add(line.logged())
            (error if line.code else output).write(line.content)
    # Before the collation: once that stands, nobody comes by here again.
    store.put_once(layout.requests_key(batch_id), rows.data())
    collation = figures.collation(output.part(), error.part(), code)
    if store.put_once(layout.collation_key(batch_id), _written(collation)):
        return collation
    return _read(store.read(layout.collation_key(batch_id)))


def _fixed_cause(store: Store, batch_id: str, missing: tuple[str, str]) -> tuple[str, str]:
    """The first call's cause: a later one must not write other bytes into the same files."""
    key = layout.cause_key(batch_id)
    store.put_once(key, json.dumps({"format": FORMAT, "code": missing[0], "message": missing[1]}).encode())
    values = json.loads(store.read(key))
    return str(values["code"]), str(values["message"])


def _refused_lines(store: Store, batch_id: str) -> Iterator[_Line]:
    """Lines that validation refused one by one, in input order."""
    data = store.read_or_none(layout.refused_key(batch_id))
    for row in iterate_rows(data) if data is not None else ():
        yield _answered(batch_id, row, row.custom_id)


def _partition_lines(
    store: Store, batch_id: str, partitions: Sequence[int], missing: tuple[str, str]
) -> Iterator[_Line]:
    """Every line of every partition, in input order."""
    code, message = missing
    for partition in sorted(partitions):
        ids = read_ids(store, batch_id, partition)
        with tempfile.TemporaryFile(prefix="gridline-results-") as file:
            places = _spooled(store, batch_id, partition, ids=dict(ids), file=file)
            for number, custom_id in ids:
                if number in places:
                    start, size, line = places[number]
                    file.seek(start)
                    yield replace(line, content=file.read(size))
                else:
                    content = missing_line(batch_id, number, custom_id, code=code, message=message)
                    yield _Line(number, content, code, custom_id, missing_status(code))


def _spooled(
    store: Store, batch_id: str, partition: int, *, ids: dict[int, str], file: BinaryIO
) -> dict[int, tuple[int, int, _Line]]:
    """Write the sealed results to local disk and say where each line's is.

    Results arrive in the order of completion and leave in input order; only places are kept in memory.
    """
    manifest = read_manifest(store, batch_id, partition)
    if manifest is None:
        raise InvariantBroken(f"Partition {partition} of {batch_id} is collated before it is sealed.")
    places: dict[int, tuple[int, int, _Line]] = {}
    start = 0
    for segment in manifest.segments:
        counting = set(segment.lines)
        for row in read_rows(store.read(segment.key)):
            # Our own line numbers and ids decide, not what a job wrote: nothing foreign gets into a file.
            if row.line in counting and row.line in ids and row.line not in places:
                line = _answered(batch_id, row, ids[row.line])
                size = file.write(line.content)
                places[row.line] = (start, size, replace(line, content=b""))
                start += size
    return places


def _answered(batch_id: str, row: ResultRow, custom_id: str) -> _Line:
    """A line that ran or was refused."""
    content = response_line(
        batch_id, row.line, custom_id, status=row.status_code, request=row.request_id, body=row.body
    )
    return _Line(
        row.line,
        content,
        row.code,
        custom_id,
        row.status_code,
        row.model,
        row.input_tokens,
        row.output_tokens,
    )


@dataclass
class _Figures:
    """Counts while lines pass by."""

    total: int = 0
    completed: int = 0
    cancelled: int = 0
    usage: dict[str, list[int]] = field(default_factory=dict)

    def add(self, line: _Line) -> None:
        """Count one line; tokens only of delivered ones."""
        self.total += 1
        if line.code is None:
            self.completed += 1
            of_model = self.usage.setdefault(line.model, [0, 0, 0])
            for index, more in enumerate((1, line.input_tokens, line.output_tokens)):
                of_model[index] += more
        elif line.code == "batch_cancelled":
            self.cancelled += 1

    def collation(self, output: FilePart | None, error: FilePart | None, cause: str) -> Collation:
        """The figures, once every line was counted."""
        return Collation(
            total=self.total,
            completed=self.completed,
            failed=self.total - self.completed - self.cancelled,
            cancelled=self.cancelled,
            input_tokens=sum(one[1] for one in self.usage.values()),
            output_tokens=sum(one[2] for one in self.usage.values()),
            usage_by_model=dict(sorted(self.usage.items())),
            output=output,
            error=error,
            cause=cause,
        )


class _File:
    """A result file that exists only if a line is written to it; whole and visible when the block ends."""

    def __init__(self, store: Store, key: str, stack: ExitStack) -> None:
        self._store = store
        self._key = key
        self._stack = stack
        self._writer: ObjectWriter | None = None
        self._hash = sha256()
        self._bytes = 0

    def write(self, content: bytes) -> None:
        """Append one line."""
        if self._writer is None:
            self._writer = self._stack.enter_context(self._store.writer(self._key))
        self._writer.write(content)
        self._hash.update(content)
        self._bytes += len(content)

    def part(self) -> FilePart | None:
        """Size and digest; None when nothing was written."""
        return None if self._writer is None else FilePart(self._bytes, self._hash.hexdigest())


def _written(collation: Collation) -> bytes:
    return json.dumps({"format": FORMAT, **asdict(collation)}).encode()


def _read(data: bytes) -> Collation:
    """The collation that stands."""
    values = json.loads(data)
    if values.pop("format") != FORMAT:
        raise InvariantBroken(
            f"A collation is of a format that this version does not read; it reads {FORMAT}."
        )
    parts = {name: FilePart(**values[name]) if values[name] else None for name in ("output", "error")}
    return Collation(**{**values, **parts})
