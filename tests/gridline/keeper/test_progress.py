import json
from typing import Any

import pytest

from gridline import limits
from gridline.batches import moves
from gridline.batches.states import Status
from gridline.capacity.allocator import allocate
from gridline.db.work import unit_of_work
from gridline.keeper.progress import ProgressFollower
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.storage import layout
from gridline.telemetry import metrics
from tests.gridline.capacity.yard import Yard


@pytest.fixture
def batch(yard: Yard) -> str:
    """A batch with one granted partition."""
    made = yard.batch(yard.account("a"))
    allocate()
    return made


def write(yard: Yard, order: JobOrder, sequence: int, **stated: Any) -> None:
    """The progress object as the job writes it."""
    told = {
        "format": 1, "state": "running", "done": 0, "failed": 0, "lines": 10, "sequence": sequence,
        "engine_healthy": True, "engine_version": "0.32.0", "runner_version": "1", **stated,
    }  # fmt: skip
    yard.store.replace(layout.progress_key(order.attempt_prefix), json.dumps(told).encode())


def follower_of(yard: Yard) -> ProgressFollower:
    """A follower whose own clock goes as the database's does."""
    return ProgressFollower(monotonic=yard.seconds)


def test_a_heartbeat_renews_the_lease(yard: Yard, batch: str) -> None:
    """A lease lives as long as its job's sequence number moves, however long that is."""
    order, follower = yard.begin(batch), ProgressFollower()
    for sequence in range(10):
        yard.clock.advance(seconds=limits.LEASE_TTL_SECONDS - 1)
        write(yard, order, sequence)
        assert follower.follow() == 1
    assert len(yard.leases(live=True)) == 1


def test_a_heartbeat_that_stands_still_loses_the_lease(yard: Yard, batch: str) -> None:
    """A progress object that no longer changes is no life: the lease lapses and the partition waits again."""
    order, follower = yard.begin(batch), follower_of(yard)
    write(yard, order, 7)
    assert follower.follow() == 1
    yard.clock.advance(seconds=limits.LEASE_TTL_SECONDS - 1)
    assert follower.follow() == 0
    assert len(yard.leases(live=True)) == 1
    yard.clock.advance(seconds=1)
    follower.follow()
    assert yard.leases(live=True) == []
    assert yard.partition(batch).state == "waiting"
    assert yard.store.read_or_none(layout.stop_key(order.attempt_prefix)) is not None


def test_engine_deaths_are_counted_once(yard: Yard, batch: str) -> None:
    """Every engine that died under a job counts once in the metric, however often its progress is read."""
    order, follower = yard.begin(batch), follower_of(yard)
    before = metrics.ENGINE_DEATHS._value.get()
    for sequence, deaths in enumerate((0, 2, 2, 3)):
        write(yard, order, sequence, engine_deaths=deaths)
        follower.follow()
    assert metrics.ENGINE_DEATHS._value.get() - before == 3


def test_a_keeper_that_was_away_lets_no_live_job_lapse(yard: Yard, batch: str) -> None:
    """A keeper that starts after hours reads progress first; only a job that stands still then loses its lease."""
    order = yard.begin(batch)
    write(yard, order, 4_000)
    yard.clock.advance(hours=3)
    follower = follower_of(yard)
    follower.follow()
    assert len(yard.leases(live=True)) == 1
    yard.clock.advance(seconds=limits.LEASE_TTL_SECONDS)
    follower.follow()
    assert yard.leases(live=True) == []


@pytest.mark.parametrize("step", [3_600, -3_600, 300, -300])
def test_a_database_clock_that_is_set_ends_no_live_job(yard: Yard, batch: str, step: int) -> None:
    """Forward or back: a job whose heartbeat moves keeps its lease, even if it has not moved since the step."""
    seconds = [0.0]
    order, follower = yard.begin(batch), ProgressFollower(monotonic=lambda: seconds[0])
    write(yard, order, 1)
    follower.follow()
    yard.clock.advance(seconds=step)
    for sequence in (1, 2, 3):
        write(yard, order, sequence)
        follower.follow()
        assert len(yard.leases(live=True)) == 1
        seconds[0] += 2
    # And one that stands still loses it after 45 seconds, wherever the database's clock stands.
    seconds[0] += limits.LEASE_TTL_SECONDS
    follower.follow()
    assert yard.leases(live=True) == []


def test_counts_are_live(yard: Yard, batch: str) -> None:
    """Lines done and failed show on partition and batch while it runs, beside the lines refused at validation."""
    refused = 3
    yard.change(batch, total=yard.partition(batch).lines + refused, failed=refused)
    order = yard.begin(batch)
    write(yard, order, 1, done=2, failed=1)
    ProgressFollower().follow()
    row, part = yard.row(batch), yard.partition(batch)
    assert (part.lines_done, part.lines_failed) == (2, 1)
    assert (row.completed, row.failed, row.any_line_ran) == (2, 1 + refused, True)
    assert (part.engine_version, part.runner_version) == ("0.32.0", "1")


def test_a_loading_model_is_the_reason_until_it_runs(yard: Yard, batch: str) -> None:
    """While the engine loads the customer reads ``model_loading``; once lines run there is no reason."""
    order, follower = yard.begin(batch), ProgressFollower()
    write(yard, order, 1, state="loading", engine_healthy=False)
    follower.follow()
    assert yard.row(batch).reason_code == "model_loading"
    write(yard, order, 2, state="running")
    follower.follow()
    assert yard.row(batch).reason_code is None


def test_a_batch_that_has_run_does_not_load_again(yard: Yard, batch: str) -> None:
    """Once a line has run, a second engine's loading is no wait of the batch."""
    yard.change(batch, any_line_ran=True)
    order = yard.begin(batch)
    write(yard, order, 1, state="loading", engine_healthy=False)
    ProgressFollower().follow()
    assert yard.row(batch).reason_code is None


def test_a_released_lease_changes_nothing(yard: Yard, batch: str) -> None:
    """Progress that arrives after its lease was given back is not counted."""
    order = yard.begin(batch)
    yard.end(batch, order, JobExit.STOPPED)
    write(yard, order, 9, done=5)
    assert ProgressFollower().follow() == 0
    assert yard.partition(batch).lines_done == 0


def test_a_cancelling_batch_shows_what_it_had(yard: Yard, batch: str) -> None:
    """Lines that finish in the grace after a cancel are counted with the results: one may come too late for them."""
    order = yard.begin(batch)
    write(yard, order, 1, done=2)
    ProgressFollower().follow()
    with unit_of_work() as work:
        moves.move(work, moves.locked(work, batch), Status.CANCELLING)
    write(yard, order, 2, done=4)
    ProgressFollower().follow()
    assert (yard.row(batch).completed, yard.partition(batch).lines_done) == (2, 4)
