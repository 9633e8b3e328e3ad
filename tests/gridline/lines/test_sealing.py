"""Sealing: one winner a line, decided once."""

from gridline.lines.sealing import read_manifest, seal
from gridline.lines.segments import write_rows
from gridline.storage import layout
from gridline.storage.objects import Store

from .conftest import BATCH
from .segment_rows import row


def put(store: Store, attempt: int, segment: int, *lines: int) -> str:
    """Close a segment of an attempt at partition 0."""
    key = layout.segment_key(layout.attempt_prefix(BATCH, 0, attempt, f"lease{attempt}"), segment)
    store.put_once(key, write_rows([row(line, text=f"{attempt}.{segment}") for line in lines]))
    return key


def lines_by_key(store: Store, *attempts: int) -> dict[str, tuple[int, ...]]:
    """Seal with these attempts and say which lines of which segment count."""
    manifest = seal(store, BATCH, 0, [(attempt, f"lease{attempt}") for attempt in attempts])
    return {segment.key: segment.lines for segment in manifest.segments}


def test_lowest_attempt_wins(store: Store) -> None:
    """A line done twice counts as first done, in whatever order the attempts are named."""
    first, second = put(store, 1, 0, 0, 2), put(store, 1, 1, 2, 3)
    third = put(store, 2, 0, 3, 1, 0)
    assert lines_by_key(store, 2, 1) == {first: (0, 2), second: (3,), third: (1,)}


def test_sealed_once(store: Store) -> None:
    """A segment that appears after sealing never counts, and sealing again says the same."""
    first = put(store, 1, 0, 0)
    assert lines_by_key(store, 1) == {first: (0,)}
    put(store, 1, 1, 1)
    assert lines_by_key(store, 1) == {first: (0,)}


def test_first_of_two_sealers_wins(store: Store) -> None:
    """A sealer that finds another's manifest at the last moment takes that one."""
    put(store, 1, 0, 0)
    original = store.put_once

    def late(key: str, data: bytes) -> bool:
        original(key, b'{"format": 1, "segments": [{"key": "theirs", "lines": [7]}]}')
        return original(key, data)

    store.put_once = late  # type: ignore[method-assign]
    assert lines_by_key(store, 1) == {"theirs": (7,)}


def test_unnamed_attempts_and_other_objects_do_not_count(store: Store) -> None:
    """Only segments of the attempts that the platform names count."""
    first = put(store, 1, 0, 0)
    put(store, 2, 0, 1)
    store.replace(layout.progress_key(layout.attempt_prefix(BATCH, 0, 1, "lease1")), b"{}")
    assert lines_by_key(store, 1) == {first: (0,)}


def test_nothing_ran(store: Store) -> None:
    """A partition without attempts seals empty; before that it has no manifest."""
    assert read_manifest(store, BATCH, 0) is None
    manifest = seal(store, BATCH, 0, [])
    assert (manifest.segments, manifest.lines) == ((), 0)
    assert read_manifest(store, BATCH, 0) == manifest
