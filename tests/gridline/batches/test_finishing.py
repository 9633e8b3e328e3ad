"""How batches end: files, charge and status together, once, whatever happened before."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from gridline.batches import cancelling, finishing, moves, reading
from gridline.batches.states import Status
from gridline.batches.tables import Attempt, Batch, Partition
from gridline.catalog import cards
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import Conflict, Unavailable
from gridline.files.tables import File
from gridline.ledger import proving
from gridline.ledger import reading as books
from gridline.ledger.tables import Resolution
from gridline.lines.segments import ResultRow, write_rows
from gridline.storage import layout
from tests.gridline.batches.bench import MODEL, Bench
from tests.racing import together

Row = Callable[[str], Batch]

CREDIT = 10**9


def attempt(batch: Batch, number: int, lease: str, *, tries: int = 1, over: str = "done") -> None:
    with unit_of_work() as work:
        work.session.get_one(Partition, (batch.id, number)).state = over
        work.session.add(
            Attempt(batch_id=batch.id, partition=number, number=tries, lease_id=lease, started_at=work.now)
        )
        locked = moves.locked(work, batch.id)
        if locked.status == Status.VALIDATING:
            moves.move(work, locked, Status.IN_PROGRESS)


def lines_of(bench: Bench, file_id: str | None) -> list[dict[str, Any]]:
    with unit_of_work() as work:
        key = work.session.get_one(File, file_id).object_key
    return [json.loads(line) for line in bench.store.read(key).splitlines()]


def balance(bench: Bench) -> tuple[int, int]:
    with unit_of_work() as work:
        found = books.balance(work, bench.account_id)
        assert proving.prove(work) == []
        return found.available_nanos, found.held_nanos


def test_finished_batch_is_delivered_charged_and_released(bench: Bench, row: Row) -> None:
    """All lines done: completed, output in input order, charge = tokens x rate, hold back, slot free."""
    batch = bench.held(lines=(2, 1))
    bench.segment(batch, 1, [2], lease="l1")
    bench.segment(batch, 0, [1, 0], lease="l0")
    attempt(batch, 0, "l0")
    attempt(batch, 1, "l1")
    assert finishing.finish(batch.id, run_over=False) == Status.COMPLETED
    ended = row(batch.id)
    assert [line["custom_id"] for line in lines_of(bench, ended.output_file_id)] == ["c0", "c1", "c2"]
    assert (ended.completed, ended.failed, ended.total, ended.error_file_id) == (3, 0, 3, None)
    card = cards.catalogue()["smollm2-135m-instruct"]
    charge = 30 * card.input_price_nanos + 6 * card.output_price_nanos
    assert balance(bench) == (10 * CREDIT - charge, 0)
    with unit_of_work() as work:
        assert work.session.get_one(Account, bench.account_id).open_batches == 0


def test_finishing_again_changes_nothing(bench: Bench, row: Row) -> None:
    """A second finish of an ended batch leaves files, money and status as they are."""
    batch = bench.held()
    bench.segment(batch, 0, [0, 1], lease="l0")
    attempt(batch, 0, "l0")
    finishing.finish(batch.id, run_over=False)
    before, money = row(batch.id), balance(bench)
    bench.clock.advance(hours=30)
    assert finishing.finish(batch.id, run_over=True) == Status.COMPLETED
    assert (row(batch.id).completed_at, balance(bench)) == (before.completed_at, money)


def test_ten_finishes_at_once_settle_once(bench: Bench, row: Row) -> None:
    """Collate, settle and the keeper may all finish a batch at the same moment: one charge, one pair of files."""
    batch = bench.held()
    bench.segment(batch, 0, [0, 1], lease="l0")
    attempt(batch, 0, "l0")
    assert together(10, lambda: finishing.finish(batch.id, run_over=True)) == [Status.COMPLETED] * 10
    assert row(batch.id).status == Status.COMPLETED
    assert balance(bench)[1] == 0
    with unit_of_work() as work:
        assert len(work.session.scalars(select(Resolution)).all()) == 1
        assert len(work.session.scalars(select(File).where(File.batch_id == batch.id)).all()) == 1


def test_collate_leaves_the_end_to_settle(bench: Bench, row: Row) -> None:
    """After collate the batch is finalizing and not charged; settle then ends it."""
    batch = bench.held()
    bench.segment(batch, 0, [0, 1], lease="l0")
    attempt(batch, 0, "l0")
    assert finishing.collate(batch.id) == Status.FINALIZING
    assert balance(bench)[1] == CREDIT
    assert row(batch.id).output_file_id is None
    assert finishing.finish(batch.id, run_over=True) == Status.COMPLETED


def test_run_that_dies_after_a_line_ran_completes_with_server_errors(bench: Bench, row: Row) -> None:
    """Once a line has run a batch never fails: the missing lines are server_error and free."""
    batch = bench.held(lines=(3,))
    bench.segment(batch, 0, [1], lease="l0")
    attempt(batch, 0, "l0", over="waiting")
    assert finishing.finish(batch.id, run_over=True) == Status.COMPLETED
    ended = row(batch.id)
    assert (ended.completed, ended.failed) == (1, 2)
    errors = lines_of(bench, ended.error_file_id)
    assert [line["custom_id"] for line in errors] == ["c0", "c2"]
    assert {line["response"]["body"]["error"]["code"] for line in errors} == {"server_error"}


def test_run_that_dies_before_any_line_ran_fails_free_of_charge(bench: Bench, row: Row) -> None:
    """Nothing ran: failed with server_error, no files, everything returned."""
    batch = bench.held()
    assert finishing.finish(batch.id, run_over=True) == Status.FAILED
    ended = row(batch.id)
    assert (ended.error_code, ended.output_file_id, ended.error_file_id) == ("server_error", None, None)
    assert balance(bench) == (10 * CREDIT, 0)


def test_parked_batch_is_left_alone_when_its_run_ends(bench: Bench, row: Row) -> None:
    """The teardown of a run that parked its batch does nothing, nor does the keeper when it hears of that run's end."""
    batch = bench.held()
    with unit_of_work() as work:
        moves.locked(work, batch.id).waiting = "parked"
    assert finishing.settle(batch.id) == Status.VALIDATING
    assert finishing.finish(batch.id, run_over=True) == Status.VALIDATING


@pytest.mark.parametrize("state", ["waiting", "granted", "running"])
def test_teardown_that_wakes_up_late_ends_nothing_that_goes_on(bench: Bench, row: Row, state: str) -> None:
    """A late copy of settle, in a run that was resumed meanwhile, leaves the batch to go on; the second one ends it."""
    batch = bench.held(lines=(2,))
    bench.segment(batch, 0, [0], lease="l0")
    attempt(batch, 0, "l0", over=state)
    assert finishing.settle(batch.id) == row(batch.id).status == Status.IN_PROGRESS
    bench.segment(batch, 0, [1], lease="l0", place=2)
    with unit_of_work() as work:
        work.session.get_one(Partition, (batch.id, 0)).state = "done"
    assert finishing.settle(batch.id) == Status.COMPLETED
    assert row(batch.id).completed == 2


def test_run_marked_failed_while_it_waits_inside_airflow_ends_the_batch(bench: Bench, row: Row) -> None:
    """Nobody resumes a deferred run that was marked failed: the batch ends, free of charge."""
    batch = bench.held()
    with unit_of_work() as work:
        moves.locked(work, batch.id).waiting = "deferred"
    assert finishing.finish(batch.id, run_over=True) == Status.FAILED
    assert row(batch.id).error_code == "server_error"


@pytest.mark.parametrize(("window", "hours"), [("24h", 12), ("72h", 48)])
def test_wait_past_the_start_bound_fails_capacity_unavailable(
    bench: Bench, row: Row, window: str, hours: int
) -> None:
    """A batch that got no GPU within its start bound fails and costs nothing, not a second earlier."""
    batch = bench.held(window=window)
    with unit_of_work() as work:
        moves.locked(work, batch.id).waiting = "parked"
    bench.clock.advance(hours=hours, seconds=-1)
    assert finishing.finish(batch.id, run_over=False) == Status.VALIDATING
    bench.clock.advance(seconds=1)
    assert finishing.finish(batch.id, run_over=False) == Status.FAILED
    assert row(batch.id).error_code == "capacity_unavailable"
    assert balance(bench) == (10 * CREDIT, 0)


def test_expired_batch_delivers_and_charges_what_completed(bench: Bench, row: Row) -> None:
    """At expires_at: done lines in the output and charged, the rest batch_expired, counted failed and free."""
    batch = bench.held(lines=(3,))
    bench.segment(batch, 0, [2], lease="l0")
    attempt(batch, 0, "l0", over="running")
    bench.clock.moment = batch.expires_at
    assert finishing.finish(batch.id, run_over=False) == Status.EXPIRED
    ended = row(batch.id)
    assert (ended.completed, ended.failed, ended.cancelled) == (1, 2, 0)
    errors = lines_of(bench, ended.error_file_id)
    assert [(line["response"], line["error"]["code"]) for line in errors] == [(None, "batch_expired")] * 2
    assert balance(bench)[1] == 0


def test_a_late_collate_leaves_a_stopping_job_its_last_seconds(bench: Bench, row: Row) -> None:
    """While a job of a cancelled batch still runs, ``collate`` fixes nothing; what the job closes then is delivered."""
    batch = bench.held(lines=(3,))
    attempt(batch, 0, "l0", over="running")
    with unit_of_work() as work:
        moves.move(work, moves.locked(work, batch.id), Status.CANCELLING)
    assert finishing.collate(batch.id) == Status.CANCELLING
    bench.segment(batch, 0, [0, 1], lease="l0")
    assert finishing.finish(batch.id, run_over=True) == Status.CANCELLED
    assert (row(batch.id).completed, row(batch.id).cancelled) == (2, 1)


def test_cancelled_batch_delivers_what_completed(bench: Bench, row: Row) -> None:
    """A cancel keeps finished lines; the rest is batch_cancelled, counted as cancelled and free."""
    batch = bench.held(lines=(2,))
    bench.segment(batch, 0, [0], lease="l0")
    attempt(batch, 0, "l0", over="running")
    with unit_of_work() as work:
        cancelling.cancel(work, account_id=bench.account_id, batch_id=batch.id, actor="token:t")
    assert finishing.finish(batch.id, run_over=False) == Status.CANCELLED
    ended = row(batch.id)
    assert (ended.completed, ended.failed, ended.cancelled) == (1, 0, 1)
    assert lines_of(bench, ended.error_file_id)[0]["error"]["code"] == "batch_cancelled"


def test_batch_of_refused_lines_costs_nothing_and_has_a_receipt(bench: Bench, row: Row) -> None:
    """Every line refused: nothing is held or run, and the batch is completed at a cost of 0, which its receipt shows."""
    batch = bench.create()
    refusal = ResultRow(0, "c0", 400, "req_0", '{"error":{}}', "context_length_exceeded", MODEL, 0, 0)
    bench.store.put_once(layout.refused_key(batch.id), write_rows([refusal]))
    with unit_of_work() as work:
        checked = moves.locked(work, batch.id)
        checked.validated_at = work.now
        checked.card, checked.total, checked.failed = cards.catalogue()[MODEL].copy(), 1, 1
    assert finishing.finish(batch.id, run_over=True) == Status.COMPLETED
    with unit_of_work() as work:
        shown = reading.batch_object(work, work.session.get_one(Batch, batch.id))
        receipt = books.receipt(work, batch.id, bench.account_id)
    assert shown["gridline"]["cost"] == receipt["charged"] == "0.000000000"
    assert (shown["output_file_id"], shown["request_counts"]["failed"]) == (None, 1)
    assert balance(bench) == (10 * CREDIT, 0)


def test_cancel_before_validation_leaves_no_files(bench: Bench, row: Row) -> None:
    """Cancelled before its file was checked: counts 0/0/0, no files, no charge, the slot is free."""
    batch = bench.create()
    with unit_of_work() as work:
        cancelling.cancel(work, account_id=bench.account_id, batch_id=batch.id, actor="token:t")
    assert finishing.finish(batch.id, run_over=False) == Status.CANCELLED
    ended = row(batch.id)
    assert (ended.total, ended.output_file_id, ended.error_file_id) == (0, None, None)
    assert balance(bench) == (10 * CREDIT, 0)


def test_segments_of_a_late_job_never_count(bench: Bench, row: Row) -> None:
    """What a lost job writes after the partition was sealed changes neither files nor charge."""
    batch = bench.held(lines=(2,))
    bench.segment(batch, 0, [0], lease="l0")
    attempt(batch, 0, "l0", over="waiting")
    finishing.finish(batch.id, run_over=True, settle=False)
    bench.segment(batch, 0, [1], lease="late", attempt=2)
    finishing.finish(batch.id, run_over=True)
    assert (row(batch.id).completed, row(batch.id).failed) == (1, 1)


def test_a_line_that_runs_after_the_seal_holds_up_no_end(
    bench: Bench, row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash after an empty seal, then a late job's first line: the batch completes without it, and does not stay open."""
    batch = bench.held(lines=(2,))
    attempt(batch, 0, "l0", over="running")

    def dies(batch_id: str, ending: Any) -> str:
        raise Unavailable("The database is away.")

    with monkeypatch.context() as patch:
        patch.setattr(finishing, "_fail", dies)
        with pytest.raises(Unavailable):
            finishing.finish(batch.id, run_over=True)
    bench.segment(batch, 0, [0], lease="l0")
    with unit_of_work() as work:
        moves.locked(work, batch.id).any_line_ran = True
    assert finishing.finish(batch.id, run_over=True) == Status.COMPLETED
    assert (row(batch.id).completed, row(batch.id).failed) == (0, 2)


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED])
def test_cancel_of_an_ended_batch_is_a_conflict(bench: Bench, row: Row, status: Status) -> None:
    """Cancelling what has completed or failed is a 409 in OpenAI's words and changes nothing."""
    batch = bench.held()
    if status is Status.COMPLETED:
        bench.segment(batch, 0, [0, 1], lease="l0")
        attempt(batch, 0, "l0")
    finishing.finish(batch.id, run_over=True)
    with (
        pytest.raises(Conflict, match=f"Cannot cancel a batch with status '{status}'."),
        unit_of_work() as work,
    ):
        cancelling.cancel(work, account_id=bench.account_id, batch_id=batch.id, actor="token:t")
    assert row(batch.id).status == status


def test_the_object_shows_every_key_and_the_money(bench: Bench) -> None:
    """The API's object carries every key of OpenAI's Batch, and hold and cost with nine digits."""
    batch = bench.held()
    bench.segment(batch, 0, [0, 1], lease="l0")
    attempt(batch, 0, "l0")
    finishing.finish(batch.id, run_over=False)
    with unit_of_work() as work:
        shown = reading.batch_object(work, reading.get(work, account_id=bench.account_id, batch_id=batch.id))
    from openai.types import Batch as Theirs

    assert set(Theirs.model_fields) <= set(shown)
    assert shown["gridline"]["hold"] == "1.000000000"
    assert shown["usage"]["input_tokens"] == 20
    assert shown["expires_at"] - shown["created_at"] == timedelta(hours=24).total_seconds()
