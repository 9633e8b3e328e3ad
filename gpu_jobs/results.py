"""Collects finished rows and closes them into immutable segments."""

import time
from collections.abc import Iterable

from gridline.lines.segments import ResultRow, write_rows
from gridline.storage import Store, layout

SEGMENT_CHARS_MAX = 8 * 1024 * 1024
"""A segment closes at this much, however few its lines: answers with many vectors are megabytes each."""


class Results:
    """The rows of one attempt. Rows count as finished once their segment is closed, so counts never go back."""

    def __init__(
        self,
        store: Store,
        prefix: str,
        *,
        finished: Iterable[bool],
        lines_max: int,
        seconds_max: float,
    ) -> None:
        """Go on after what earlier attempts, or an earlier run of this one, finished: was each line delivered?"""
        self._store, self._prefix = store, prefix
        self._lines_max, self._seconds_max = lines_max, seconds_max
        self._rows: list[ResultRow] = []
        self._oldest = 0.0
        self._next = 0
        known = list(finished)
        self.done = sum(known)
        self.failed = len(known) - self.done

    def add(self, row: ResultRow) -> None:
        """A finished line."""
        if not self._rows:
            self._oldest = time.monotonic()
        self._rows.append(row)

    def close_due(self) -> None:
        """Close segments that are full or old enough."""
        while self._full() or self._old():
            self._close()

    def flush(self) -> None:
        """Close whatever there is."""
        while self._rows:
            self._close()

    def _first(self) -> list[ResultRow]:
        """The rows of the next segment: no more than may be lost, nor than readers should hold at once."""
        rows, held = [], 0
        for row in self._rows[: self._lines_max]:
            rows.append(row)
            held += len(row.body)
            if held >= SEGMENT_CHARS_MAX:
                break
        return rows

    def _full(self) -> bool:
        rows = self._first()
        return len(rows) >= self._lines_max or sum(len(row.body) for row in rows) >= SEGMENT_CHARS_MAX

    def _old(self) -> bool:
        return bool(self._rows) and time.monotonic() - self._oldest >= self._seconds_max

    def _close(self) -> None:
        """One segment; called by one thread at a time, while ``add`` may go on in another."""
        rows = self._first()
        data = write_rows(rows)
        while not self._store.put_once(layout.segment_key(self._prefix, self._next), data):
            # An earlier run under the same lease wrote that one: its lines are not ours to overwrite.
            self._next += 1
        self._next += 1
        del self._rows[: len(rows)]
        self._oldest = time.monotonic()
        delivered = sum(row.delivered for row in rows)
        self.done += delivered
        self.failed += len(rows) - delivered
