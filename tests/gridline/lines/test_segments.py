import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gridline.errors import InvariantBroken
from gridline.lines.segments import SCHEMA, ResultRow, read_rows, write_rows

ROWS = [
    ResultRow(7, "b", 200, "req_1", '{"object":"list"}', None, "m", 3, 4),
    ResultRow(2, "a\n😀", 400, "req_2", '{"error":{}}', "invalid_request", "m", 0, 0),
]


def test_rows_come_back() -> None:
    """Rows read are the rows written, in the order written, whatever their text."""
    assert read_rows(write_rows(ROWS)) == ROWS
    assert read_rows(write_rows([])) == []
    assert [row.delivered for row in ROWS] == [True, False]


def test_other_format_is_refused() -> None:
    """A segment of a format that this version does not know is refused instead of misread."""
    sink = pa.BufferOutputStream()
    pq.write_table(SCHEMA.empty_table().replace_schema_metadata({b"format": b"9"}), sink)
    with pytest.raises(InvariantBroken, match="'9'"):
        read_rows(sink.getvalue().to_pybytes())
