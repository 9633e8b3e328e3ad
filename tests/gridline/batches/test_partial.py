"""What a batch has done so far, from validating to long after its end."""

import json
from typing import Any

import pytest

from gridline.batches import cancelling, finishing, moves, partial
from gridline.batches.states import Status
from gridline.batches.tables import Batch, Partition
from gridline.db.work import unit_of_work
from gridline.errors import InvalidRequest, InvariantBroken, NotFound
from gridline.ledger import reading as books
from gridline.lines.segments import ResultRow, write_rows
from gridline.storage import layout
from tests.gridline.batches.bench import Bench


def read(
    bench: Bench, batch: Batch, after: str | None = None, lines: int = 1_000
) -> tuple[list[str], str, bool]:
    """The custom_ids of a page, the next cursor, and whether more may follow."""
    with unit_of_work() as work:
        found = partial.standing(work, account_id=bench.account_id, batch_id=batch.id)
    page, incomplete = partial.page(bench.store, found, after=after, lines_max=lines)
    with page.file as file:
        shown: list[dict[str, Any]] = [json.loads(line) for line in file]
    return [line["custom_id"] for line in shown], page.cursor.text(batch.id), incomplete


def over(batch: Batch, *numbers: int) -> None:
    """These partitions are done."""
    with unit_of_work() as work:
        for number in numbers:
            work.session.get_one(Partition, (batch.id, number)).state = "done"


def refuse(bench: Bench, batch: Batch, line: int) -> None:
    """Validation refused a line of its own."""
    body = json.dumps({"error": {"code": "context_length_exceeded"}})
    row = ResultRow(line, f"c{line}", 400, "r", body, "context_length_exceeded", "", 0, 0)
    bench.store.replace(layout.refused_key(batch.id), write_rows([row]))


def test_a_batch_that_is_being_validated_has_nothing_yet(bench: Bench) -> None:
    """Before its file was read there is an empty page with a cursor, also when lines were refused already."""
    batch = bench.create()
    refuse(bench, batch, 0)
    shown, after, incomplete = read(bench, batch)
    assert (shown, incomplete) == ([], True)
    assert read(bench, batch, after) == ([], after, True)


def test_results_grow_until_the_end(bench: Bench) -> None:
    """Each call yields what came since the cursor, refused lines first, and the last one says that it is the last."""
    batch = bench.held(lines=(2, 2))
    refuse(bench, batch, 9)
    assert read(bench, batch)[0] == ["c9"]
    bench.claim(batch, 0, lease="l0")
    bench.claim(batch, 1, lease="l1")
    bench.segment(batch, 1, [3], lease="l1", place=0)
    shown, after, incomplete = read(bench, batch)
    assert (shown, incomplete) == (["c9", "c3"], True)
    bench.segment(batch, 0, [1, 0], lease="l0", place=0)
    bench.segment(batch, 1, [2], lease="l1", place=1)
    over(batch, 0, 1)
    assert finishing.collate(batch.id) == Status.FINALIZING
    shown, last, incomplete = read(bench, batch, after)
    assert (sorted(shown), incomplete) == (["c0", "c1", "c2"], True)
    assert finishing.finish(batch.id, run_over=True) == Status.COMPLETED
    assert read(bench, batch, last) == ([], last, False)
    assert read(bench, batch, after, lines=1)[2] is True
    assert sorted(read(bench, batch)[0]) == ["c0", "c1", "c2", "c3", "c9"]


def test_a_second_attempt_adds_to_the_first(bench: Bench) -> None:
    """What an attempt closed before it died comes from it; the next one adds the rest, and nothing twice."""
    batch = bench.held(lines=(3,))
    bench.claim(batch, 0, lease="l1")
    bench.segment(batch, 0, [0], lease="l1", place=0)
    shown, after, _ = read(bench, batch)
    assert shown == ["c0"]
    bench.claim(batch, 0, lease="l2", attempt=2)
    bench.segment(batch, 0, [1, 0], lease="l2", attempt=2, place=0)
    bench.segment(batch, 0, [2], lease="l9", attempt=3, place=0)
    assert read(bench, batch, after)[0] == ["c1"]


def test_lines_that_never_ran_are_not_among_them(bench: Bench) -> None:
    """A cancelled batch shows what it did; what it did not run stands in the error file only."""
    batch = bench.held(lines=(3,))
    bench.claim(batch, 0, lease="l0")
    bench.segment(batch, 0, [1], lease="l0", place=0)
    with unit_of_work() as work:
        cancelling.cancel(work, account_id=bench.account_id, batch_id=batch.id, actor="t")
    assert read(bench, batch)[2] is True
    assert finishing.finish(batch.id, run_over=True) == Status.CANCELLED
    assert (read(bench, batch)[0], read(bench, batch)[2]) == (["c1"], False)


def test_a_failed_batch_has_nothing_more(bench: Bench) -> None:
    """Nothing ran, so nothing comes, also when a job writes afterwards; refused lines stay readable."""
    batch = bench.held(lines=(1,))
    refuse(bench, batch, 9)
    bench.claim(batch, 0, lease="l0", state="given_up")
    assert finishing.finish(batch.id, run_over=True) == Status.FAILED
    bench.segment(batch, 0, [0], lease="l0", place=0)
    assert (read(bench, batch)[0], read(bench, batch)[2]) == (["c9"], False)


def test_a_batch_that_failed_validation_is_empty(bench: Bench) -> None:
    """A file with a bad line ran nothing: an empty page, and no more to wait for."""
    batch = bench.create()
    with unit_of_work() as work:
        moves.move(work, moves.locked(work, batch.id), Status.FAILED)
    assert read(bench, batch)[::2] == ([], False)


def test_results_that_are_gone_name_the_files(bench: Bench) -> None:
    """After its objects' retention an ended batch says where its lines are now, whatever the cursor."""
    batch = bench.held(lines=(1,))
    bench.claim(batch, 0, lease="l0", state="done")
    bench.segment(batch, 0, [0], lease="l0", place=0)
    finishing.finish(batch.id, run_over=True)
    _, after, _ = read(bench, batch)
    bench.store.delete_prefix(layout.batch_prefix(batch.id))
    with unit_of_work() as work:
        output_file_id = work.session.get_one(Batch, batch.id).output_file_id
    for cursor in (None, after):
        with pytest.raises(NotFound, match=f"output_file_id {output_file_id}") as caught:
            read(bench, batch, cursor)
        assert (caught.value.code, caught.value.param) == ("results_gone", "batch_id")


@pytest.mark.parametrize("ended", [False, True])
def test_an_object_that_vanishes_while_it_is_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    """Of an ended batch it means that results are gone; of a live one it is a fault, and never half a page."""
    batch = bench.held(lines=(1,))
    bench.claim(batch, 0, lease="l0", state="done")
    bench.segment(batch, 0, [0], lease="l0", place=0)
    if ended:
        finishing.finish(batch.id, run_over=True)
    key = layout.segment_key(layout.attempt_prefix(batch.id, 0, 1, "l0"), 0)
    times = bench.store.modified(layout.batch_prefix(batch.id))
    monkeypatch.setattr(bench.store, "modified", lambda prefix: times)
    bench.store.delete(key)
    with pytest.raises(NotFound if ended else InvariantBroken) as caught:
        read(bench, batch)
    assert caught.value.code == ("results_gone" if ended else "server_error")
    assert key not in caught.value.message


def test_strangers_see_nothing(bench: Bench) -> None:
    """Another account's batch is missing, before its cursor is even looked at."""
    batch = bench.held()
    with unit_of_work() as work, pytest.raises(NotFound, match="No batch found"):
        partial.standing(work, account_id="acct_" + "0" * 24, batch_id=batch.id)


def test_another_batchs_cursor_is_refused(bench: Bench) -> None:
    """A cursor reads on in its own batch only."""
    first, second = bench.create(), bench.create()
    with pytest.raises(InvalidRequest) as caught:
        read(bench, second, read(bench, first)[1])
    assert caught.value.param == "after"


def test_reading_charges_nothing(bench: Bench) -> None:
    """However often it is read, credit and hold stay as they are."""
    batch = bench.held(lines=(1,))
    bench.claim(batch, 0, lease="l0")
    bench.segment(batch, 0, [0], lease="l0", place=0)
    with unit_of_work() as work:
        before = books.balance(work, bench.account_id)
    for _ in range(3):
        read(bench, batch)
    with unit_of_work() as work:
        assert books.balance(work, bench.account_id) == before
