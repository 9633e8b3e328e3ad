"""Result rows as Parquet: what a GPU job closes into segments and what validation refuses line by line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import pyarrow as pa
import pyarrow.parquet as pq

from gridline.errors import InvariantBroken

FORMAT = 1
READ_ROWS = 100


@dataclass(frozen=True)
class ResultRow:
    """What became of one line."""

    line: int
    """Index among the file's requests, from 0."""
    custom_id: str
    status_code: int
    """200: delivered; else the status of the refusal in ``body``."""
    request_id: str
    body: str
    """The JSON response body, with OpenAI's keys only."""
    code: str | None
    """None when delivered, else the error code of the line."""
    model: str
    input_tokens: int
    """Tokens billed for the input; 0 when the line is not billed."""
    output_tokens: int
    """Tokens billed for the output; 0 when the line is not billed."""

    @property
    def delivered(self) -> bool:
        """Whether the customer gets, and pays for, this line."""
        return self.code is None


SCHEMA = pa.schema(
    [
        pa.field("line", pa.int64(), nullable=False),
        pa.field("custom_id", pa.string(), nullable=False),
        pa.field("status_code", pa.int64(), nullable=False),
        pa.field("request_id", pa.string(), nullable=False),
        pa.field("body", pa.string(), nullable=False),
        pa.field("code", pa.string()),
        pa.field("model", pa.string(), nullable=False),
        pa.field("input_tokens", pa.int64(), nullable=False),
        pa.field("output_tokens", pa.int64(), nullable=False),
    ],
    metadata={b"format": str(FORMAT).encode()},
)


def write_rows(rows: Sequence[ResultRow]) -> bytes:
    """The rows as one Parquet object, in the order given."""
    columns = [[getattr(row, one.name) for row in rows] for one in fields(ResultRow)]
    table = pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def read_rows(data: bytes) -> list[ResultRow]:
    """The rows of an object that ``write_rows`` made.

    Raises:
        InvariantBroken: the object is of a format that this version does not know.
    """
    return list(iterate_rows(data))


def iterate_rows(data: bytes, *, start: int = 0) -> Iterator[ResultRow]:
    """The rows from ``start`` on, read some at a time: an object of refused lines may hold a whole file's.

    Raises:
        InvariantBroken: the object is of a format that this version does not know.
    """
    parquet = pq.ParquetFile(pa.BufferReader(data))
    form = (parquet.schema_arrow.metadata or {}).get(b"format", b"").decode()
    if form != str(FORMAT):
        raise InvariantBroken(f"A segment has format {form!r}; this version reads {FORMAT}.")
    for batch in parquet.iter_batches(batch_size=READ_ROWS):
        skipped = min(start, batch.num_rows)
        start -= skipped
        for row in batch.slice(skipped).to_pylist():
            yield ResultRow(**row)


def read_outcomes(data: bytes) -> list[tuple[int, bool]]:
    """Line numbers of an object that ``write_rows`` made, and whether each was delivered, without the bodies."""
    table = pq.read_table(pa.BufferReader(data), columns=["line", "code"])
    return [
        (line, code is None)
        for line, code in zip(table["line"].to_pylist(), table["code"].to_pylist(), strict=True)
    ]


def read_line_numbers(data: bytes) -> list[int]:
    """The line numbers of an object that ``write_rows`` made, in its order, without its bodies."""
    numbers: list[int] = pq.read_table(pa.BufferReader(data), columns=["line"])["line"].to_pylist()
    return numbers
