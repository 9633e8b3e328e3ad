"""Following: every result once, in the order in which it was done, while more of them come."""

import json
import os
import tracemalloc
from datetime import datetime
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridline import limits
from gridline.lines.collating import collate
from gridline.lines.cursors import Cursor
from gridline.lines.following import Attempts, Follower
from gridline.lines.partitions import BatchOf, PartitionPlan, Spool, write_partitions
from gridline.lines.sealing import seal
from gridline.lines.segments import ResultRow, write_rows
from gridline.lines.sizing import Accepted
from gridline.storage import ObjectMissing, layout
from gridline.storage.objects import Store

from .conftest import BATCH, CARDS, CHAT
from .segment_rows import row

ONE: Attempts = {0: [(1, "l")]}
TWO: Attempts = {0: [(1, "l"), (2, "l")]}


def close(
    store: Store, partition: int, attempt: int, *rows: ResultRow, at: int = 0, number: int | None = None
) -> str:
    """Close the next segment of an attempt, at this second."""
    prefix = layout.attempt_prefix(BATCH, partition, attempt, "l")
    number = len(store.list(prefix)) if number is None else number
    key = layout.segment_key(prefix, number)
    store.put_once(key, write_rows(rows))
    os.utime(path_of(store, key), (at, at))
    return key


def path_of(store: Store, key: str) -> Path:
    """An object's file."""
    return Path(store.url.removeprefix("file://")) / key


def read(
    store: Store, attempts: Attempts, after: Cursor | None = None, *, lines: int = 1_000, ended: bool = False
) -> tuple[list[str], Cursor, bool]:
    """What one page holds, as ``custom_id:text``, where to go on, and whether more is there."""
    page = Follower(store, BATCH, attempts, ended=ended).page(
        after or Cursor(), lines_max=lines, refused=True
    )
    with page.file as file:
        data = file.read()
    assert len(data) == page.bytes
    shown = []
    for line in data.decode().splitlines():
        one = json.loads(line)
        body = one["response"]["body"]
        shown.append(f"{one['custom_id']}:{body.get('text', body.get('error', {}).get('code'))}")
    assert len(shown) == page.lines
    return shown, Cursor.read(page.cursor.text(BATCH), BATCH), page.more


def test_only_what_came_since(store: Store) -> None:
    """A cursor yields what was closed after it, nothing while nothing was, and the same again when asked again."""
    close(store, 0, 1, row(0), row(2))
    first, after, more = read(store, ONE)
    assert (first, more) == (["id-0:ok", "id-2:ok"], False)
    assert read(store, ONE, after) == ([], after, False)
    close(store, 0, 1, row(1))
    assert read(store, ONE, after)[0] == ["id-1:ok"]
    close(store, 0, 1, row(3))
    assert read(store, ONE, after)[0] == ["id-1:ok", "id-3:ok"]
    assert read(store, ONE)[0] == ["id-0:ok", "id-2:ok", "id-1:ok", "id-3:ok"]


def test_partitions_come_as_they_are_done(store: Store) -> None:
    """Segments of several partitions stand in the order in which they were closed, and equal instants by key."""
    close(store, 0, 1, row(0), at=30)
    close(store, 1, 1, row(5), at=10)
    close(store, 1, 1, row(6), at=30)
    close(store, 2, 1, row(9), at=20)
    found = read(store, {0: [(1, "l")], 1: [(1, "l")], 2: [(1, "l")]})[0]
    assert found == ["id-5:ok", "id-9:ok", "id-0:ok", "id-6:ok"]


def test_lowest_attempt_wins(store: Store) -> None:
    """A line that two attempts did comes once, from the first of them, whichever was closed first."""
    close(store, 0, 2, row(0, text="2"), row(1, text="2"), at=10)
    close(store, 0, 1, row(1, text="1"), at=20)
    assert read(store, TWO)[0] == ["id-1:1", "id-0:2"]


def test_a_line_that_was_read_does_not_come_again(store: Store) -> None:
    """An attempt that lost its lease and goes on writing adds what nobody read, and nothing twice."""
    close(store, 0, 1, row(0, text="1"), at=1)
    close(store, 0, 2, row(1, text="2"), row(2, text="2"), at=2)
    shown, after, _ = read(store, TWO)
    assert shown == ["id-0:1", "id-1:2", "id-2:2"]
    close(store, 0, 1, row(2, text="1"), row(3, text="1"), at=3)
    assert read(store, TWO, after)[0] == ["id-3:1"]


def test_after_the_end_only_what_counts(store: Store) -> None:
    """Once a partition is sealed a segment that came later shows nothing, and what counts still comes."""
    close(store, 0, 1, row(0, text="1"))
    _, after, _ = read(store, TWO)
    close(store, 0, 2, row(1, text="2"))
    seal(store, BATCH, 0, TWO[0])
    close(store, 0, 1, row(1, text="late"), row(7, text="late"))
    for ended in (False, True):
        assert read(store, TWO, after, ended=ended)[0] == ["id-1:2"]
        assert read(store, TWO, ended=ended)[0] == ["id-0:1", "id-1:2"]


def test_a_batch_that_ended_without_a_seal_shows_nothing(store: Store) -> None:
    """``failed`` means that nothing ran, whatever a job writes afterwards."""
    close(store, 0, 1, row(0))
    assert read(store, ONE, ended=True)[0] == []


def test_attempts_that_nobody_named_show_nothing(store: Store) -> None:
    """Only segments of the attempts that the platform names are read."""
    close(store, 0, 2, row(0))
    store.replace(layout.progress_key(layout.attempt_prefix(BATCH, 0, 1, "l")), b"{}")
    assert read(store, ONE) == ([], Cursor(), False)


def test_refused_lines_come_first_and_can_be_cut(store: Store) -> None:
    """Lines that validation refused stand before all others, in input order, in pages of exactly the limit."""
    refused = [row(line, code="context_length_exceeded") for line in range(250)]
    store.replace(layout.refused_key(BATCH), write_rows(refused))
    close(store, 0, 1, row(900))
    after, found, sizes = Cursor(), [], []
    for _ in range(4):
        shown, after, more = read(store, ONE, after, lines=100)
        found += shown
        sizes.append((len(shown), more))
    assert sizes == [(100, True), (100, True), (51, False), (0, False)]
    assert found == [f"id-{line}:context_length_exceeded" for line in range(250)] + ["id-900:ok"]


def test_a_page_ends_with_a_segment(store: Store) -> None:
    """A page over its limit holds the rest of one segment; the next begins with the segment after it."""
    for first in range(0, 40, 10):
        close(store, 0, 1, *[row(line) for line in range(first, first + 10)], at=first)
    shown, after, more = read(store, ONE, lines=11)
    assert (len(shown), more) == (20, True)
    shown, after, more = read(store, ONE, after, lines=20)
    assert (len(shown), more) == (20, False)


@pytest.mark.parametrize(
    ("limit", "most"), [("RESULTS_PAGE_BYTES_MAX", 3_000), ("RESULTS_PAGE_SEGMENTS_MAX", 2)]
)
def test_pages_are_bounded_in_bytes_and_objects(
    store: Store, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    """Few long lines and many short segments both make a shorter page, and nothing is lost between pages."""
    monkeypatch.setattr(limits, limit, most)
    for number in range(5):
        close(store, 0, 1, row(number, text="x" * 1_400), at=number)
    after, sizes = Cursor(), []
    for _ in range(4):
        shown, after, more = read(store, ONE, after)
        sizes.append((len(shown), more))
    assert sizes == [(2, True), (2, True), (1, False), (0, False)]


def test_a_listing_with_a_hole_loses_nothing(store: Store) -> None:
    """A folder that is written to while it is listed may hide an older segment: it is read all the same."""
    hidden = close(store, 0, 1, row(0))
    close(store, 0, 1, row(1))
    whole = store.modified

    def listing(prefix: str) -> dict[str, datetime]:
        return {key: moment for key, moment in whole(prefix).items() if key != hidden}

    with mock.patch.object(store, "modified", listing):
        assert read(store, ONE)[0] == ["id-0:ok", "id-1:ok"]


def test_an_object_that_goes_meanwhile_is_no_half_page(store: Store) -> None:
    """When an object is deleted between the look and the read, nothing comes and no file is left open."""
    close(store, 0, 1, row(0))
    key = close(store, 0, 1, row(1))
    follower = Follower(store, BATCH, ONE, ended=False)
    store.delete(key)
    with pytest.raises(ObjectMissing):
        follower.page(Cursor(), lines_max=10, refused=True)


def test_lines_are_those_of_the_files(store: Store) -> None:
    """Byte for byte the lines of the output and the error file, in another order."""
    numbers = range(6)
    with Spool() as spool:
        spool.add([Accepted(line, f"id-{line}", "{}", 1, 1, "tiny-chat") for line in numbers])
        plans = [PartitionPlan(0, 6, 6)]
        write_partitions(store, spool, plans, BatchOf(BATCH, CHAT, CARDS["tiny-chat"]))
    store.replace(layout.refused_key(BATCH), write_rows([row(9, code="context_length_exceeded")]))
    close(store, 0, 1, row(3, text="ä\u2028"), row(1, code="invalid_request"), row(5))
    close(store, 0, 2, row(0), row(3), row(2, code="server_error"), row(4))
    seal(store, BATCH, 0, TWO[0])
    page = Follower(store, BATCH, TWO, ended=True).page(Cursor(), lines_max=100, refused=True)
    with page.file as file:
        found = file.readlines()
    keys = [layout.file_key("acct_1", name) for name in ("out", "err")]
    collate(
        store, batch_id=BATCH, account_id="acct_1", partitions=[0], output_key=keys[0], error_key=keys[1],
        missing=("batch_expired", "late"),
    )  # fmt: skip
    lines = [line for key in keys for line in store.read(key).splitlines(keepends=True)]
    assert sorted(found) == sorted(lines)


@pytest.mark.thorough
def test_memory_does_not_grow_with_the_page(store: Store) -> None:
    """A page of 30 MB is made in the memory of a segment or two."""
    for number in range(30):
        close(store, 0, 1, *[row(10 * number + place, text="x" * 100_000) for place in range(10)], at=number)
    tracemalloc.start()
    try:
        page = Follower(store, BATCH, ONE, ended=False).page(Cursor(), lines_max=1_000, refused=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    page.file.close()
    assert page.bytes > 30_000_000
    assert peak < 6_000_000


EVENTS = st.lists(
    st.one_of(
        st.tuples(
            st.integers(0, 1),
            st.integers(1, 3),
            st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True),
        ),
        st.integers(1, 6),
    ),
    max_size=16,
)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(events=EVENTS)
def test_every_result_once_whatever_is_written_meanwhile(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[int, int, list[int]] | int]
) -> None:
    """However attempts, old ones too, write between the pages: no line twice, and every line that counts comes."""
    store = Store(tmp_path_factory.mktemp("objects").as_uri())
    attempts: Attempts = {part: [(number, "l") for number in (1, 2, 3)] for part in (0, 1)}
    after, found, done = Cursor(), [], set()
    for second, event in enumerate([*events, 1]):
        if isinstance(event, int):
            shown, after, _ = read(store, attempts, after, lines=event)
            found += shown
        else:
            partition, attempt, lines = event
            inside = {line for line in lines if (partition, attempt, line) not in done}
            done |= {(partition, attempt, line) for line in inside}
            rows = [row(10 * partition + line, text=str(attempt)) for line in sorted(inside)]
            if rows:
                close(store, partition, attempt, *rows, at=second)
    manifests = [seal(store, BATCH, part, tries) for part, tries in attempts.items()]
    more = True
    while more:
        shown, after, more = read(store, attempts, after, lines=3, ended=True)
        found += shown
    ids = [one.partition(":")[0] for one in found]
    assert len(ids) == len(set(ids))
    assert set(ids) == {
        f"id-{line}" for one in manifests for segment in one.segments for line in segment.lines
    }
