"""GPU time budgets (product B8): a batch that has used its GPU time ends as at its deadline."""

from datetime import timedelta

import pytest

from gridline.batches import moves
from gridline.capacity import attempts, gpu_time
from gridline.capacity.allocator import allocate
from gridline.db.work import unit_of_work
from gridline.errors import InvalidRequest
from gridline.files.tables import File
from gridline.keeper.deadlines import Deadlines
from gridline.ledger import proving
from gridline.lines.exits import JobExit
from gridline.storage import layout
from tests.gridline.batches.bench import Bench
from tests.gridline.capacity.yard import Yard, lease_id


@pytest.fixture
def bench(yard: Yard, bench: Bench) -> Bench:
    """The bench, on a pool of two GPUs."""
    yard.gpus(2)
    return bench


def allow(bench: Bench, seconds: int | None) -> None:
    with unit_of_work() as work:
        gpu_time.set_budget(work, bench.account_id, seconds, actor="operator:ada", why="test")


def used(yard: Yard, batch_id: str) -> int:
    with unit_of_work() as work:
        return int(gpu_time.used_seconds(work, batch_id, work.now))


def test_it_ends_with_what_is_done(yard: Yard, bench: Bench) -> None:
    """Two leases of five minutes use ten: jobs stop, no more grants, expired with partial delivery, and charged."""
    allow(bench, 600)
    batch = bench.held(lines=(2, 2, 2))
    allocate()
    orders = [yard.begin(batch.id, number) for number in (0, 1)]
    bench.segment(batch, 0, [0, 1], lease=lease_id(orders[0]))
    yard.progress(orders[0], done=2)
    keeper = Deadlines(monotonic=yard.seconds)
    yard.clock.advance(seconds=299)
    keeper.enforce()
    assert yard.store.read_or_none(layout.stop_key(orders[0].attempt_prefix)) is None
    yard.clock.advance(seconds=1)
    assert used(yard, batch.id) == 600
    keeper.enforce()
    for number, order in enumerate(orders):
        assert b"deadline" in yard.store.read(layout.stop_key(order.attempt_prefix))
        assert attempts.end(batch.id, number, lease_id(order), JobExit.STOPPED) == "over"
    assert (allocate(), attempts.begin(batch.id, 2)) == (0, "over")
    assert keeper.enforce() == 1
    row = yard.row(batch.id)
    assert (row.status, row.completed, row.failed) == ("expired", 2, 4)
    assert row.expired_at == yard.clock.now()
    with unit_of_work() as work:
        assert proving.prove(work) == []
        error = work.session.get_one(File, row.error_file_id)
    assert b"GPU time" in yard.store.read(error.object_key)
    assert keeper.enforce() == 0


def test_waiting_uses_no_gpu_time(yard: Yard, bench: Bench) -> None:
    """Hours in the queue, and a lease that was given back, count only for what they lasted."""
    allow(bench, 600)
    batch = bench.held()
    yard.clock.advance(hours=3)
    allocate()
    order = yard.begin(batch.id)
    yard.clock.advance(seconds=100)
    attempts.end(batch.id, 0, lease_id(order), JobExit.CRASHED)
    yard.clock.advance(hours=3)
    assert (used(yard, batch.id), Deadlines().enforce()) == (100, 0)


@pytest.mark.parametrize(
    ("account", "card", "over"), [(None, 60, 60), (90, 60, 60), (60, 90, 60), (None, None, None)]
)
def test_the_smaller_budget_counts(
    yard: Yard, bench: Bench, account: int | None, card: int | None, over: int | None
) -> None:
    """The account's and the model's, as copied; without either there is none."""
    allow(bench, account)
    batch = bench.held()
    with unit_of_work() as work:
        locked = moves.locked(work, batch.id)
        locked.card = {**(locked.card or {}), "gpu_seconds_per_batch_max": card}
    allocate()
    yard.begin(batch.id)
    yard.clock.advance(seconds=59)
    with unit_of_work() as work:
        assert gpu_time.over(work) == []
    yard.clock.advance(seconds=1)
    with unit_of_work() as work:
        assert gpu_time.over(work) == ([batch.id] if over == 60 else [])


def test_noted_once_and_only_while_it_runs(yard: Yard, bench: Bench) -> None:
    """Twice is once; a batch that is cancelling keeps its own end."""
    batch, other = bench.held(), bench.held()
    with unit_of_work() as work:
        assert gpu_time.note_over(work, batch.id)
    with unit_of_work() as work:
        assert not gpu_time.note_over(work, batch.id)
    yard.cancel(other.id)
    with unit_of_work() as work:
        assert not gpu_time.note_over(work, other.id)


def test_a_clock_set_back_gives_no_negative_time(yard: Yard, bench: Bench) -> None:
    """A lease that ended before it began, by the clock, lasted nothing."""
    batch = bench.held()
    allocate()
    order = yard.begin(batch.id)
    yard.clock.moment -= timedelta(hours=1)
    assert used(yard, batch.id) == 0
    attempts.end(batch.id, 0, lease_id(order), JobExit.CRASHED)
    assert used(yard, batch.id) == 0


def test_a_budget_is_at_least_a_second(bench: Bench) -> None:
    """Zero would end every batch at once; none lifts it."""
    with pytest.raises(InvalidRequest, match="at least 1 second"):
        allow(bench, 0)
