"""What a request log keeps of each line of an ended batch: ids, counts and outcome, never a prompt or an answer."""

import io
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("custom_id", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("status_code", pa.int64()),
        pa.field("code", pa.string()),
        pa.field("input_tokens", pa.int64(), nullable=False),
        pa.field("output_tokens", pa.int64(), nullable=False),
    ],
    metadata={"format": "1"},
)
READ_ROWS = 5_000


class RequestRow(NamedTuple):
    """One line: its place in the file from 0, and how it ended. Only delivered lines (no ``code``) count tokens."""

    number: int
    custom_id: str
    model: str
    """"" where the line names none, or never ran."""
    status_code: int | None
    """What its answer said; None for a line that never ran."""
    code: str | None
    input_tokens: int
    output_tokens: int


class RequestRows:
    """Collects a batch's rows while its lines pass by; some hundred bytes each."""

    def __init__(self) -> None:
        self._rows: list[RequestRow] = []

    def add(self, row: RequestRow) -> None:
        """One more line."""
        self._rows.append(row)

    def data(self) -> bytes:
        """All of them as Parquet."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(SCHEMA)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        file = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), file, compression="zstd")
        return file.getvalue()


def read(data: bytes) -> Iterator[RequestRow]:
    """The rows of such an object, in input order."""
    for batch in pq.ParquetFile(io.BytesIO(data)).iter_batches(READ_ROWS):
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield RequestRow(*values)
