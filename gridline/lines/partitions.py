"""A batch's accepted lines: kept on local disk while the file is read, then cut into partitions for GPU jobs."""

import io
import json
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.parquet as pq

from gridline.errors import InvariantBroken
from gridline.limits import LINE_SECONDS_MAX, PARTITIONS_PER_BATCH_MAX
from gridline.lines.adapters import Adapter
from gridline.lines.card import Card
from gridline.lines.sizing import Accepted
from gridline.storage import layout
from gridline.storage.objects import ObjectWriter, Store

FORMAT = 1
COPY_BYTES = 1 << 20

SCHEMA = pa.schema(
    [
        pa.field("line", pa.int64(), nullable=False),
        pa.field("custom_id", pa.string(), nullable=False),
        pa.field("body", pa.string(), nullable=False),
        pa.field("input_tokens", pa.int64(), nullable=False),
    ],
    metadata={b"format": str(FORMAT).encode()},
)


@dataclass(frozen=True)
class PartitionPlan:
    """One partition as cut; ``tokens`` is the most that its lines can take, prompt and answer together."""

    number: int
    lines: int
    tokens: int


@dataclass(frozen=True)
class BatchOf:
    """What a batch's partitions have in common."""

    batch_id: str
    endpoint: str
    card: Card
    adapters: tuple[Adapter, ...] = ()
    """The fine-tuned models that its lines name."""


class RowSpool:
    """Rows of one schema, appended some at a time, on local disk: a file's rows are more than memory should hold."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self._schema = schema
        self._file: BinaryIO = tempfile.TemporaryFile(prefix="gridline-lines-")  # noqa: SIM115 - closed by __exit__
        self._writer = pq.ParquetWriter(self._file, schema, compression="zstd")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        self._file.close()

    def append(self, rows: Sequence[object]) -> None:
        """Add rows: objects with an attribute for every field of the schema."""
        if rows:
            columns = [[getattr(one, name) for one in rows] for name in self._schema.names]
            arrays = [
                pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)
            ]
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
            self.rows += len(rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Everything that was added, in order; nothing can be added afterwards."""
        self._writer.close()
        self._file.seek(0)
        parquet = pq.ParquetFile(self._file)
        # A group holds what one append did, so memory stays flat; the reader's own iteration reads far ahead.
        for group in range(parquet.num_row_groups):
            yield from parquet.read_row_group(group, use_threads=False).to_batches()

    def copy(self, store: Store, key: str) -> None:
        """Write everything that was added as one object; nothing can be added afterwards."""
        self._writer.close()
        self._file.seek(0)
        with store.writer(key) as out:
            while chunk := self._file.read(COPY_BYTES):
                out.write(chunk)


class Spool(RowSpool):
    """Accepted lines in input order: where to cut is known only when all were seen."""

    def __init__(self) -> None:
        super().__init__(SCHEMA)
        self.weights = array("q")
        """Tokens per line, prompt and answer together."""
        self._models: dict[str, int] = {}
        self._model_of_line = array("B")

    def add(self, lines: Sequence[Accepted]) -> None:
        """Append lines."""
        self.append(lines)
        self.weights.extend(one.input_tokens + one.output_tokens_max for one in lines)
        # A number a line: a batch has one base and at most eight adapters of it.
        self._model_of_line.extend(self._models.setdefault(one.model, len(self._models)) for one in lines)

    def models(self, start: int, lines: int) -> set[str]:
        """The models that so many lines from ``start`` on name."""
        numbers = set(self._model_of_line[start : start + lines])
        return {name for name, number in self._models.items() if number in numbers}


def cut(weights: Sequence[int], partition_tokens: int) -> list[PartitionPlan]:
    """Partitions of about equal weight, as many as fill ``partition_tokens`` each, within the limit a batch has."""
    total = sum(weights)
    parts = min(PARTITIONS_PER_BATCH_MAX, max(1, -(-total // partition_tokens)))
    target = max(1, -(-total // parts))
    plans: list[PartitionPlan] = []
    before, place = 0, -1
    for weight in weights:
        if before // target != place:
            place = before // target
            plans.append(PartitionPlan(len(plans), 0, 0))
        last = plans[-1]
        plans[-1] = PartitionPlan(last.number, last.lines + 1, last.tokens + weight)
        before += weight
    return plans


def write_partitions(store: Store, spool: Spool, plans: Sequence[PartitionPlan], batch: BatchOf) -> None:
    """Write ``lines.parquet`` and ``spec.json`` of every partition.

    A second pass over the same file writes the same bytes. They are overwritten, not kept, so that a pass
    which died half-way in an older version leaves no partition cut elsewhere than its neighbours.
    """
    remaining = iter(plans)
    current, room = None, 0
    with ExitStack() as stack:
        for read in spool.batches():
            rows = read
            while rows.num_rows:
                if not room:
                    stack.close()
                    current = next(remaining)
                    room = current.lines
                    key = layout.partition_lines_key(batch.batch_id, current.number)
                    sink = _Sink(stack.enter_context(store.writer(key)))
                    writer = stack.enter_context(pq.ParquetWriter(sink, SCHEMA, compression="zstd"))
                taken = rows.slice(0, room)
                writer.write_batch(taken)
                room -= taken.num_rows
                rows = rows.slice(taken.num_rows)
    start = 0
    for plan in plans:
        spec = _spec(plan, batch, spool.models(start, plan.lines))
        start += plan.lines
        store.replace(layout.partition_spec_key(batch.batch_id, plan.number), json.dumps(spec).encode())


def _spec(plan: PartitionPlan, batch: BatchOf, named: set[str]) -> dict[str, object]:
    """What a GPU job must know of its partition."""
    card = batch.card
    return {
        "format": FORMAT,
        "batch_id": batch.batch_id,
        "partition": plan.number,
        "endpoint": batch.endpoint,
        "model": {
            "id": card.id,
            "commit": card.commit,
            "dtype": card.dtype,
            "kind": card.kind,
            "context_tokens": card.context_tokens,
            "engine_arguments": list(card.engine_arguments),
            "adapters_by_rank": [list(pair) for pair in card.adapters_by_rank],
        },
        "adapters": [one.as_dict() for one in batch.adapters if one.id in named],
        "lines_key": layout.partition_lines_key(batch.batch_id, plan.number),
        "lines": plan.lines,
        "line_seconds_max": LINE_SECONDS_MAX,
    }


def read_ids(store: Store, batch_id: str, partition: int) -> list[tuple[int, str]]:
    """(line, custom_id) of a partition's lines, in input order, without loading their bodies.

    Raises:
        ObjectMissing: there is no such partition, or its retention is over.
        InvariantBroken: the object is of a format that this version does not know.
    """
    with tempfile.TemporaryFile(prefix="gridline-ids-") as file:
        for chunk in store.stream(layout.partition_lines_key(batch_id, partition)):
            file.write(chunk)
        file.seek(0)
        parquet = pq.ParquetFile(file)
        form = (parquet.schema_arrow.metadata or {}).get(b"format", b"").decode()
        if form != str(FORMAT):
            raise InvariantBroken(f"A partition has format {form!r}; this version reads {FORMAT}.")
        table = parquet.read(columns=["line", "custom_id"])
    return list(zip(table["line"].to_pylist(), table["custom_id"].to_pylist(), strict=True))


class _Sink(io.RawIOBase):
    """An object's writer as the file that Parquet wants."""

    def __init__(self, writer: ObjectWriter) -> None:
        super().__init__()
        self._writer = writer
        self._written = 0

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, data: Any) -> int:
        """Pass the bytes on."""
        content = bytes(data)
        self._writer.write(content)
        self._written += len(content)
        return len(content)

    def tell(self) -> int:
        """Bytes passed on so far."""
        return self._written
