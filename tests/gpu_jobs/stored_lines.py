"""Lines as a GPU job finds them: in the store, as validation writes them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gpu_jobs.partition import Line, Lines
from gridline.storage import Store


def stored(folder: Path, lines: list[Line]) -> Lines:
    """The lines as a job finds them, in groups of two."""
    rows: list[dict[str, Any]] = [vars(one) for one in lines]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=2)
    store = Store(folder.as_uri())
    store.replace("lines", sink.getvalue().to_pybytes())
    return Lines(store, "lines")
