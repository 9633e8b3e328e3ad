"""Proves delivered results from the files alone: what was charged is computed again, and no request is lost or doubled.

Files are streamed, so that one line of each is in memory. A batch whose files were deleted since cannot be proven.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import jiter
from sqlalchemy import select
from sqlalchemy.orm import aliased

from gridline import storage
from gridline.batches.states import Status
from gridline.batches.tables import Batch
from gridline.db.work import unit_of_work
from gridline.files.tables import File
from gridline.ledger.tables import Hold, Resolution
from gridline.lines.reading import physical_lines
from gridline.lines.results import tokens_of
from gridline.storage import ObjectMissing
from gridline.usage.charging import charge_nanos

PAGE = 100
_RESULT_LINE_BYTES_MAX = 1 << 30
_SETTLED = (Status.COMPLETED, Status.EXPIRED, Status.CANCELLED)


@dataclass(frozen=True)
class Settled:
    """A batch that ended with results: its files, None where it has none, and what it was charged."""

    batch: Batch
    input: File
    output: File | None
    error: File | None
    card: Mapping[str, Any]
    price_nanos: int


@dataclass(frozen=True)
class Read:
    """What a look at all results found: sentences of what does not hold, and how many batches it could read."""

    broken: list[str]
    batches: int


def prove() -> Read:
    """Read the files of every settled batch."""
    broken: list[str] = []
    batches = 0
    for one in _settled():
        kept = [file for file in (one.input, one.output, one.error) if file is not None]
        if any(file.deleted_at is not None for file in kept):
            continue
        try:
            broken += prove_batch(one)
        except ObjectMissing:
            # Deleted a moment ago, or lost: which of the two, the proof of the objects says.
            continue
        batches += 1
    return Read(broken, batches)


def prove_batch(one: Settled) -> list[str]:
    """What the batch's files do not bear out, a sentence each."""
    requests, output, error = _Lines(one.input), _Lines(one.output), _Lines(one.error)
    broken = [_order_broken(requests, output, error)]
    price = charge_nanos(one.card, output.input_tokens, output.output_tokens)
    if price != one.price_nanos:
        broken.append(f"was charged {one.price_nanos} nano-credits, its output file comes to {price}")
    counts = (one.batch.completed, one.batch.failed + one.batch.cancelled)
    if counts != (output.count, error.count):
        broken.append(f"counts {counts[0]} and {counts[1]} lines, its files {output.count} and {error.count}")
    broken += [lines.changed() for lines in (requests, output, error)]
    return [f"batch {one.batch.id} {fault}" for fault in broken if fault]


class _Lines:
    """One file, read once: its custom_ids in order, and on the way its tokens, its length and its checksum."""

    def __init__(self, file: File | None) -> None:
        self.count = self.input_tokens = self.output_tokens = 0
        self._file = file
        self._bytes = 0
        self._hash = sha256()

    def ids(self) -> Iterator[str]:
        """The custom_id of each line; an empty one, which no request has, where the line is none of ours."""
        for line in physical_lines(self._chunks(), bytes_max=_RESULT_LINE_BYTES_MAX):
            row = _parsed(line.data or b"")
            self.count += 1
            given, written = tokens_of(((row.get("response") or {}).get("body") or {}).get("usage") or {})
            self.input_tokens += given
            self.output_tokens += written
            yield row.get("custom_id", "")

    def changed(self) -> str | None:
        """Whether what was read to its end is another file than the one that was stored."""
        if self._file is None or (self._bytes, self._hash.hexdigest()) == (
            self._file.bytes,
            self._file.sha256,
        ):
            return None
        return f"has file {self._file.id}, whose bytes are not those that were stored"

    def _chunks(self) -> Iterator[bytes]:
        for chunk in storage.store().stream(self._file.object_key) if self._file is not None else ():
            self._bytes += len(chunk)
            self._hash.update(chunk)
            yield chunk


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        row = jiter.from_json(data)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _order_broken(requests: _Lines, output: _Lines, error: _Lines) -> str | None:
    """Whether the results, taken together, are not exactly the requests in their order; each file is read to its end."""
    results = [output.ids(), error.ids()]
    heads = [next(one, None) for one in results]
    fault = None
    for number, wanted in enumerate(requests.ids(), 1):
        if wanted in heads:
            place = heads.index(wanted)
            heads[place] = next(results[place], None)
        else:
            fault = fault or f"has no result for request {number} where it belongs"
    if heads != [None, None]:
        fault = fault or "has more results than requests"
    for one in results:
        for _ in one:
            continue
    return fault


def _settled() -> Iterator[Settled]:
    """Every batch with results, oldest first, some at a time."""
    given, delivered, refused = aliased(File), aliased(File), aliased(File)
    rows = (
        select(
            Batch, given, delivered, refused, Hold.card, Resolution.charged_nanos + Resolution.overrun_nanos
        )
        .join(Hold, Hold.batch_id == Batch.id)
        .join(Resolution, Resolution.batch_id == Batch.id)
        .join(given, given.id == Batch.input_file_id)
        .outerjoin(delivered, delivered.id == Batch.output_file_id)
        .outerjoin(refused, refused.id == Batch.error_file_id)
        .where(Batch.status.in_(_SETTLED), Batch.total > 0)
        .order_by(Batch.sequence)
        .limit(PAGE)
    )
    last = -1
    while True:
        with unit_of_work() as work:
            page = [Settled(*row) for row in work.session.execute(rows.where(Batch.sequence > last))]
        if not page:
            return
        yield from page
        last = page[-1].batch.sequence
