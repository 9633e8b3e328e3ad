"""Sealing a partition: which result of which attempt counts for each line, decided once and for ever."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from gridline.errors import InvariantBroken
from gridline.lines.segments import read_line_numbers
from gridline.storage import layout
from gridline.storage.objects import Store

FORMAT = 1


@dataclass(frozen=True)
class SealedSegment:
    """The lines of one segment that count."""

    key: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Manifest:
    """Every result of a partition that counts: one a line, lowest attempt first."""

    segments: tuple[SealedSegment, ...]

    @property
    def lines(self) -> int:
        """Lines that have a result."""
        return sum(len(segment.lines) for segment in self.segments)


def seal(store: Store, batch_id: str, partition: int, attempts: Sequence[tuple[int, str]]) -> Manifest:
    """The partition's manifest: made from these attempts (number, lease id), or the one that stands already.

    Segments that appear later never count, so a job that lost its lease cannot change a result.
    """
    standing = read_manifest(store, batch_id, partition)
    if standing is not None:
        return standing
    taken: set[int] = set()
    segments = []
    for number, lease_id in sorted(attempts):
        prefix = layout.attempt_prefix(batch_id, partition, number, lease_id)
        for key in filter(layout.is_segment, store.list(prefix)):
            lines = tuple(
                line for line in dict.fromkeys(read_line_numbers(store.read(key))) if line not in taken
            )
            taken.update(lines)
            if lines:
                segments.append(SealedSegment(key, lines))
    manifest = Manifest(tuple(segments))
    if store.put_once(layout.manifest_key(batch_id, partition), _written(manifest)):
        return manifest
    return _standing(store, batch_id, partition)


def read_manifest(store: Store, batch_id: str, partition: int) -> Manifest | None:
    """The manifest that stands; None while the partition is not sealed.

    Raises:
        InvariantBroken: the manifest is of a format that this version does not know.
    """
    data = store.read_or_none(layout.manifest_key(batch_id, partition))
    if data is None:
        return None
    values = json.loads(data)
    if values.get("format") != FORMAT:
        raise InvariantBroken(f"A manifest has format {values.get('format')!r}; this version reads {FORMAT}.")
    return Manifest(tuple(SealedSegment(one["key"], tuple(one["lines"])) for one in values["segments"]))


def _standing(store: Store, batch_id: str, partition: int) -> Manifest:
    """Somebody else sealed first: theirs counts."""
    manifest = read_manifest(store, batch_id, partition)
    if manifest is None:
        raise InvariantBroken(f"The manifest of partition {partition} of {batch_id} disappeared.")
    return manifest


def _written(manifest: Manifest) -> bytes:
    segments = [{"key": one.key, "lines": list(one.lines)} for one in manifest.segments]
    return json.dumps({"format": FORMAT, "segments": segments}).encode()
