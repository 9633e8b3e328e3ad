"""The bodies that a batch's engine will be sent, read back from its partitions."""

import io
import json
from typing import Any

import pyarrow.parquet as pq

from gridline.storage import layout
from gridline.storage.objects import Store


def stored_bodies(store: Store, batch_id: str, partition: int = 0) -> list[dict[str, Any]]:
    """The bodies of a partition, in input order."""
    table = pq.read_table(io.BytesIO(store.read(layout.partition_lines_key(batch_id, partition))))
    return [json.loads(body) for body in table["body"].to_pylist()]
