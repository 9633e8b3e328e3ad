"""The platform's daily limit: what counts on which day, what it stops, and what it lets go on."""

from datetime import timedelta

import pytest

from gridline.batches import moves
from gridline.batches.states import Status
from gridline.capacity import budget
from gridline.capacity.allocator import allocate
from gridline.db.work import unit_of_work
from gridline.errors import InvalidRequest
from gridline.ledger import settling
from gridline.lines.exits import JobExit
from tests.gridline.capacity.yard import BATCH_NANOS, Yard


def limit(nanos: int | None) -> None:
    with unit_of_work() as work:
        budget.set_limit(work, nanos, actor="operator:ada", why="test")


def used() -> int:
    with unit_of_work() as work:
        return budget.today(work).used_nanos


def end(batch_id: str, *, charge: int) -> None:
    """End a batch with a charge; the rest of its hold comes back."""
    with unit_of_work() as work:
        settling.settle(
            work, batch_id=batch_id, charge_nanos=charge, lines=1, input_tokens=1, output_tokens=1
        )
        batch = moves.locked(work, batch_id)
        moves.move(work, batch, Status.FINALIZING)
        moves.move(work, batch, Status.COMPLETED)


@pytest.fixture
def started(yard: Yard) -> str:
    """A batch that started today and runs, on one of many GPUs."""
    yard.gpus(9)
    batch = yard.batch(yard.account("a"), partitions=2)
    yard.gpus(1)
    allocate()
    yard.begin(batch)
    yard.gpus(9)
    return batch


def test_at_the_limit_nothing_starts(yard: Yard, started: str) -> None:
    """With GPUs free, a batch that never had a lease waits as ``platform_daily_limit`` in progress; others go on."""
    waiting = yard.batch(yard.account("b"))
    limit(BATCH_NANOS)
    assert allocate() == 1  # the second partition of the batch that has started
    assert {one.batch_id for one in yard.leases(live=True)} == {started}
    row = yard.row(waiting)
    assert (row.status, row.reason_code) == ("in_progress", "platform_daily_limit")
    limit(BATCH_NANOS + 1)
    assert allocate() == 1
    assert {one.batch_id for one in yard.leases(live=True)} == {started, waiting}


def test_at_midnight_it_resets(yard: Yard, started: str) -> None:
    """A second before 00:00 UTC nothing starts, at 00:00 what waited does, though yesterday's batch still runs."""
    limit(BATCH_NANOS)
    yard.clock.moment = yard.clock.moment.replace(hour=23, minute=59, second=59)
    waiting = yard.batch(yard.account("b"))
    allocate()
    assert yard.row(waiting).reason_code == "platform_daily_limit"
    yard.clock.advance(seconds=1)
    assert used() == 0
    assert allocate() == 1
    assert yard.leases(live=True)[-1].batch_id == waiting


def test_use_is_holds_less_what_came_back(yard: Yard) -> None:
    """A batch that ends gives back what it was not charged, the same day; its charge stays used."""
    batch = yard.batch(yard.account("a"))
    allocate()
    yard.end(batch, yard.begin(batch), JobExit.DONE)
    assert used() == BATCH_NANOS
    end(batch, charge=400)
    assert used() == 400
    yard.clock.advance(days=1)
    assert used() == 0


def test_grants_of_one_look_stop_at_the_limit(yard: Yard) -> None:
    """Ten batches and ten GPUs: starts are counted as they are granted, and a grant counts before it is claimed."""
    yard.gpus(10)
    for name in "abcdefghij":
        yard.batch(yard.account(name))
    limit(3 * BATCH_NANOS)
    assert allocate() == 3
    assert used() == 3 * BATCH_NANOS
    assert allocate() == 0
    yard.clock.advance(minutes=2)
    assert used() == 3 * BATCH_NANOS


def test_the_accounts_own_limit_is_named_first(yard: Yard) -> None:
    """A batch that its own account holds up says so, also when nothing may start."""
    yard.gpus(9)
    account = yard.account("a", leases_max=1)
    yard.batch(account)
    allocate()
    second = yard.batch(account)
    limit(0)
    allocate()
    assert (yard.row(second).status, yard.row(second).reason_code) == ("validating", "account_capacity")


def test_no_limit_lets_all_start(yard: Yard) -> None:
    """Lifted, what waited starts; the same limit twice is one limit; below zero is refused."""
    batch = yard.batch(yard.account("a"))
    limit(0)
    limit(0)
    assert allocate() == 0
    assert yard.row(batch).reason_code == "platform_daily_limit"
    limit(None)
    limit(None)
    assert allocate() == 1
    with pytest.raises(InvalidRequest, match="0 credits or more"):
        limit(-1)


def test_a_clock_that_is_set_back_over_midnight_counts_no_day_twice(yard: Yard, started: str) -> None:
    """Each day has its own batches, whichever day the clock says it is now."""
    yard.clock.advance(days=1)
    assert used() == 0
    yard.clock.moment -= timedelta(days=1)
    assert used() == BATCH_NANOS
