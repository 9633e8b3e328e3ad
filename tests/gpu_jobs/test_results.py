from dataclasses import replace
from pathlib import Path

import pytest

from gpu_jobs.results import Results
from gridline.lines.segments import ResultRow, read_rows
from gridline.storage import Store


def row(number: int, code: str | None = None) -> ResultRow:
    return ResultRow(number, "c", 200, "r", "{}", code, "m", 1, 1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path.as_uri())


def results(store: Store, *, seconds_max: float = 1000) -> Results:
    return Results(store, "p/", finished=[], lines_max=3, seconds_max=seconds_max)


def lines(store: Store) -> list[list[int]]:
    return [[one.line for one in read_rows(store.read(key))] for key in store.list("p/")]


def test_full_segments_close(store: Store) -> None:
    """A segment closes when it is full; what is not closed does not count as finished yet."""
    rows = results(store)
    for number in range(7):
        rows.add(row(number, "server_error" if number == 1 else None))
    rows.close_due()
    assert lines(store) == [[0, 1, 2], [3, 4, 5]]
    assert (rows.done, rows.failed) == (5, 1)
    rows.flush()
    assert lines(store)[2:] == [[6]]
    assert (rows.done, rows.failed) == (6, 1)


def test_old_segments_close(store: Store) -> None:
    """A segment closes when its oldest row is old enough, full or not; there are no empty ones."""
    rows = results(store, seconds_max=0)
    rows.close_due()
    assert lines(store) == []
    rows.add(row(1))
    rows.close_due()
    rows.flush()
    assert lines(store) == [[1]]


def test_large_answers_close_a_segment_early(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment closes at so many characters too, so that no reader ever holds a hundred large answers."""
    monkeypatch.setattr("gpu_jobs.results.SEGMENT_CHARS_MAX", 10)
    rows = results(store)
    for number, size in enumerate((4, 6, 30, 1)):
        rows.add(replace(row(number), body="x" * size))
    rows.close_due()
    assert lines(store) == [[0, 1], [2]]
    rows.flush()
    assert lines(store) == [[0, 1], [2], [3]]


def test_segments_are_never_overwritten(store: Store) -> None:
    """A segment that stands under the same prefix keeps its bytes; the new one gets the next free number."""
    for number in (1, 2):
        rows = results(store)
        rows.add(row(number))
        rows.flush()
    assert store.list("p/") == ["p/seg-000000.parquet", "p/seg-000001.parquet"]
    assert lines(store) == [[1], [2]]
