"""Following a batch: the results closed since a cursor, as output lines, while it runs and after.

Attempts close immutable segments in the order of their numbers, so how far each was read is all that a cursor
holds. A partition's segments come lowest attempt first, as sealing takes them, and a line comes once, however many
attempts did it. Once a partition is sealed only what its manifest names comes.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

from gridline import limits
from gridline.lines.cursors import Cursor
from gridline.lines.results import response_line
from gridline.lines.sealing import read_manifest
from gridline.lines.segments import ResultRow, iterate_rows, read_line_numbers, read_rows
from gridline.storage import layout
from gridline.storage.objects import Store

Attempts = Mapping[int, Sequence[tuple[int, str]]]
"""Per partition its attempts' numbers and lease ids."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Page:
    """Some lines, in a file of their own that stands at its beginning and that the caller closes."""

    file: BinaryIO
    bytes: int
    lines: int
    cursor: Cursor
    """Where to go on."""
    more: bool
    """More is there already; the page is full."""


@dataclass(frozen=True)
class _Segment:
    """A closed segment that no page has held yet."""

    closed_at: datetime
    """When it was closed, or the one before it in its partition if that was later."""
    key: str
    partition: int
    attempt: int
    number: int


class Follower:
    """One look at a batch's objects: what was listed at this moment, and nothing later, fills one page."""

    def __init__(self, store: Store, batch_id: str, attempts: Attempts, *, ended: bool) -> None:
        """Look. ``ended``: the batch has ended, so a partition without a manifest never ran."""
        self._store, self._batch_id, self._attempts, self._ended = store, batch_id, attempts, ended
        self._times = store.modified(layout.batch_prefix(batch_id))
        self._numbers: dict[str, set[int]] = {}
        for key in filter(layout.is_segment, self._times):
            self._numbers.setdefault(key.rpartition("/")[0] + "/", set()).add(layout.segment_number(key))

    @property
    def collated(self) -> bool:
        """Whether the batch's result files were made and its objects are still there."""
        return layout.collation_key(self._batch_id) in self._times

    def page(self, after: Cursor, *, lines_max: int, refused: bool) -> Page:
        """The lines that follow a cursor, in the order in which they were done.

        The page may exceed ``lines_max`` by the rest of one segment. ``refused``: lines that validation refused
        come too, before all others.

        Raises:
            ObjectMissing: an object was deleted since the look: the batch's retention is over.
        """
        draft = _Draft(self._batch_id, lines_max, after)
        try:
            left = refused and self._add_refused(draft)
            segments = sorted(self._waiting(after), key=lambda one: (one.closed_at, one.key))
            delivered: dict[int, set[int]] = {}
            for segment in segments:
                if draft.full():
                    return draft.page(more=True)
                if segment.partition not in delivered:
                    delivered[segment.partition] = self._delivered(segment.partition, after)
                draft.add(segment, read_rows(self._store.read(segment.key)), delivered[segment.partition])
            return draft.page(more=left)
        except BaseException:
            draft.file.close()
            raise

    def _add_refused(self, draft: "_Draft") -> bool:
        """Refused lines that no page held yet; whether some are left."""
        key = layout.refused_key(self._batch_id)
        if key not in self._times:
            return False
        for row in iterate_rows(self._store.read(key), start=draft.refused):
            if draft.full():
                return True
            draft.write(row)
            draft.refused += 1
        return False

    def _waiting(self, after: Cursor) -> Iterator[_Segment]:
        """Segments that no page held yet, within a partition in sealing's order."""
        for partition, attempts in self._attempts.items():
            sealed = layout.manifest_key(self._batch_id, partition) in self._times
            if self._ended and not sealed:
                # A job that did not hear of the end may still write: it counts for nothing.
                continue
            closed_at = _LONG_AGO
            found = [
                (number, attempt, key)
                for attempt, lease_id in sorted(attempts)
                for number, key in self._closed(partition, attempt, lease_id)
                if number >= after.segments.get((partition, attempt), 0)
            ]
            named = self._named(partition) if sealed and found else set()
            for number, attempt, key in found:
                if not sealed or key in named:
                    closed_at = max(closed_at, self._times.get(key, closed_at))
                    yield _Segment(closed_at, key, partition, attempt, number)

    def _closed(self, partition: int, attempt: int, lease_id: str) -> Iterator[tuple[int, str]]:
        """Numbers and keys of an attempt's closed segments, in order and without a gap.

        A folder that is written to while it is listed may show a segment and not the one before it: as the one
        before was closed first, it is there by now.
        """
        prefix = layout.attempt_prefix(self._batch_id, partition, attempt, lease_id)
        listed = self._numbers.get(prefix, set())
        for number in range(max(listed, default=-1) + 1):
            key = layout.segment_key(prefix, number)
            if number in listed or self._store.size(key) is not None:
                yield number, key

    def _named(self, partition: int) -> set[str]:
        """Segments that the partition's manifest names. Their lines that it leaves out are a lower attempt's."""
        manifest = read_manifest(self._store, self._batch_id, partition)
        return {one.key for one in manifest.segments} if manifest else set()

    def _delivered(self, partition: int, after: Cursor) -> set[int]:
        """The partition's lines that earlier pages held, where a second attempt may hold one of them again."""
        closed = {
            attempt: list(self._closed(partition, attempt, lease_id))
            for attempt, lease_id in self._attempts[partition]
        }
        if sum(1 for one in closed.values() if one) < 2:  # noqa: PLR2004 - one attempt does no line twice
            return set()
        return {
            line
            for attempt, segments in closed.items()
            for number, key in segments
            if number < after.segments.get((partition, attempt), 0)
            for line in read_line_numbers(self._store.read(key))
        }


class _Draft:
    """A page that is being filled, on local disk."""

    def __init__(self, batch_id: str, lines_max: int, after: Cursor) -> None:
        self.file: BinaryIO = tempfile.TemporaryFile(prefix="gridline-page-")  # noqa: SIM115 - the page's reader closes it
        self.refused = after.refused
        self._batch_id = batch_id
        self._lines_max = lines_max
        self._segments = dict(after.segments)
        self._read = self._lines = self._bytes = 0

    def full(self) -> bool:
        """Whether nothing more goes in: enough lines, bytes, or objects to read."""
        return (
            self._lines >= self._lines_max
            or self._bytes >= limits.RESULTS_PAGE_BYTES_MAX
            or self._read >= limits.RESULTS_PAGE_SEGMENTS_MAX
        )

    def add(self, segment: _Segment, rows: Sequence[ResultRow], delivered: set[int]) -> None:
        """The lines of a segment that were not delivered yet; they are from now on."""
        for row in rows:
            if row.line not in delivered:
                delivered.add(row.line)
                self.write(row)
        self._segments[segment.partition, segment.attempt] = segment.number + 1
        self._read += 1

    def write(self, row: ResultRow) -> None:
        """One output line."""
        self._bytes += self.file.write(
            response_line(
                self._batch_id,
                row.line,
                row.custom_id,
                status=row.status_code,
                request=row.request_id,
                body=row.body,
            )
        )
        self._lines += 1

    def page(self, *, more: bool) -> Page:
        """The page as it is now."""
        self.file.seek(0)
        return Page(self.file, self._bytes, self._lines, Cursor(self.refused, self._segments), more)
