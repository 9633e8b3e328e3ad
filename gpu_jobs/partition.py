"""What a GPU job reads: its partition's spec, its lines, and what earlier attempts finished."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gridline.errors import InvariantBroken
from gridline.lines.segments import ResultRow, read_rows
from gridline.storage import Store, layout

FORMAT = 1


@dataclass(frozen=True)
class Spec:
    """The partition, as the platform described it."""

    batch_id: str
    partition: int
    endpoint: str
    model: dict[str, Any]
    """What the engine keeper needs to start the engine."""
    lines_key: str
    line_seconds_max: float


@dataclass(frozen=True)
class Line:
    """One line to answer."""

    line: int
    custom_id: str
    body: str
    """The JSON body, sent to the engine as it is."""
    input_tokens: int


def read_spec(store: Store, key: str) -> Spec:
    """The partition's spec.

    Raises:
        InvariantBroken: it is of a format that this version does not know.
    """
    fields = json.loads(store.read(key))
    if fields["format"] != FORMAT:
        raise InvariantBroken(f"A spec has format {fields['format']!r}; this version reads {FORMAT}.")
    return Spec(
        batch_id=fields["batch_id"],
        partition=fields["partition"],
        endpoint=fields["endpoint"],
        model=fields["model"],
        lines_key=fields["lines_key"],
        line_seconds_max=fields["line_seconds_max"],
    )


def read_lines(store: Store, key: str) -> list[Line]:
    """The partition's lines, in input order."""
    table = pq.read_table(
        pa.BufferReader(store.read(key)), columns=["line", "custom_id", "body", "input_tokens"]
    )
    return [Line(**row) for row in table.to_pylist()]


def finished_rows(store: Store, prefixes: Iterable[str]) -> dict[int, ResultRow]:
    """By line, the rows in closed segments of these attempts; the first attempt named wins."""
    rows: dict[int, ResultRow] = {}
    for prefix in prefixes:
        for key in store.list(prefix):
            if layout.is_segment(key):
                for row in read_rows(store.read(key)):
                    rows.setdefault(row.line, row)
    return rows


def in_engine_order(lines: Iterable[Line]) -> list[Line]:
    """Lines that share a beginning together (the engine's prefix cache), then long ones first."""
    return sorted(lines, key=lambda line: (_shared_beginning(line.body), -line.input_tokens, line.line))


def _shared_beginning(body: str) -> str:
    """All messages but the last: a system prompt and examples are what lines have in common."""
    messages = json.loads(body).get("messages")
    return json.dumps(messages[:-1]) if messages else ""
