"""What a GPU job reads: its partition's spec, its lines, and what earlier attempts finished."""

import json
import os
import tempfile
import weakref
from array import array
from collections.abc import Container, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow.parquet as pq

from gpu_jobs import pacing
from gridline.errors import InvariantBroken
from gridline.lines.adapters import Adapter
from gridline.lines.segments import read_outcomes
from gridline.storage import Store, layout

FORMAT = 1
SHARED_CHARS = 256
"""Prompts that are equal for so long begin alike: some blocks of the engine's prefix cache, more than any chat's head."""
COMPARED_CHARS = 1_024
"""So much of a prompt is compared as text; what follows piece by piece by its digest, so that memory stays flat."""


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
    adapters: tuple[Adapter, ...] = ()
    """Fine-tuned models that its lines name."""


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
        adapters=tuple(Adapter.from_dict(one) for one in fields.get("adapters", ())),
    )


class Lines:
    """The partition's lines, by their place in input order. They lie on local disk: in memory are numbers."""

    def __init__(self, store: Store, key: str) -> None:
        self._file = tempfile.TemporaryFile(prefix="gridline-lines-")  # noqa: SIM115 - as long as the job
        weakref.finalize(self, self._file.close)
        self._numbers, self._tokens, self._weights = array("q"), array("q"), array("q")
        self._ids, self._ends = array("q"), array("q", [0])
        """Where each line's custom_id ends and its body begins; where each body ends."""
        self._beginnings: list[str] = []
        known: dict[str, str] = {}
        with tempfile.TemporaryFile(prefix="gridline-partition-") as file:
            for chunk in store.stream(key):
                file.write(chunk)
            file.seek(0)
            parquet = pq.ParquetFile(file)
            # A group holds what validation counted together, so memory stays flat.
            for group in range(parquet.num_row_groups):
                for row in parquet.read_row_group(group, use_threads=False).to_pylist():
                    self._keep(row, known)
        self._file.flush()

    def _keep(self, row: dict[str, Any], known: dict[str, str]) -> None:
        custom_id, body = row["custom_id"].encode(), row["body"].encode()
        self._file.write(custom_id)
        self._file.write(body)
        self._numbers.append(row["line"])
        self._tokens.append(row["input_tokens"])
        self._ids.append(self._ends[-1] + len(custom_id))
        self._ends.append(self._ids[-1] + len(body))
        request = json.loads(row["body"])
        beginning = _beginning(request)
        self._beginnings.append(known.setdefault(beginning, beginning))
        self._weights.append(pacing.weight(request, row["input_tokens"]))

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: int) -> Line:
        start, middle, end = self._ends[place], self._ids[place], self._ends[place + 1]
        data = os.pread(self._file.fileno(), end - start, start)
        return Line(
            line=self._numbers[place],
            custom_id=data[: middle - start].decode(),
            body=data[middle - start :].decode(),
            input_tokens=self._tokens[place],
        )

    def weight(self, place: int) -> int:
        """The most work that a line can be, as ``pacing`` weighs it."""
        return self._weights[place]

    def in_engine_order(self, finished: Container[int] = ()) -> list[int]:
        """Places of lines that are not finished: alike ones together, for the engine's prefix cache; the longest first.

        Among those that begin alike the order of texts keeps nested beginnings together.
        """
        left = [place for place, number in enumerate(self._numbers) if number not in finished]
        longest: dict[str, int] = {}
        for place in left:
            head = self._beginnings[place][:SHARED_CHARS]
            longest[head] = max(longest.get(head, 0), self._tokens[place])

        def order(place: int) -> tuple[int, str, int, int]:
            beginning = self._beginnings[place]
            return -longest[beginning[:SHARED_CHARS]], beginning, -self._tokens[place], place

        return sorted(left, key=order)


def finished_lines(store: Store, prefixes: Iterable[str]) -> dict[int, bool]:
    """Lines in closed segments of these attempts, and whether each was delivered; the first attempt named wins."""
    lines: dict[int, bool] = {}
    for prefix in prefixes:
        for key in filter(layout.is_segment, store.list(prefix)):
            for number, delivered in read_outcomes(store.read(key)):
                lines.setdefault(number, delivered)
    return lines


def _beginning(body: dict[str, Any]) -> str:
    """The prompt as one text to sort by. Embeddings have none: they share no work in the engine.

    What is shared may be a system prompt, messages of examples, or examples in the one message that also asks.
    """
    told = [body[key] for key in ("instructions", "system") if key in body]
    asked = body.get("messages") or (body["input"] if "max_output_tokens" in body else "")
    text = json.dumps([*told, asked]) if asked else ""
    rest = range(COMPARED_CHARS, len(text), SHARED_CHARS)
    pieces = (blake2b(text[at : at + SHARED_CHARS].encode(), digest_size=4).hexdigest() for at in rest)
    return text[:COMPARED_CHARS] + "".join(pieces)
