"""The wait of a run: few inside Airflow, the others parked, all by the queue's order."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from sqlalchemy import Engine

from gridline.batches import moves
from gridline.batches.states import Waiting
from gridline.capacity import reading, waiting
from gridline.capacity.allocator import allocate
from gridline.capacity.waiting import SNAPSHOT_SQL, look_for_grant
from gridline.db.work import unit_of_work
from gridline.lines.exits import JobExit
from gridline.settings import settings
from tests.gridline.capacity.yard import Yard
from tests.gridline.ledger.bench import at_once


def until(true: Callable[[], bool]) -> None:
    """Wait until it is true, for at most ten seconds."""
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def ask(batch_id: str) -> None:
    """Ask for the parked batch's run, as the keeper does when it can go on."""
    with unit_of_work() as work:
        moves.request_run(work, moves.locked(work, batch_id), "resume", from_task="wait_for_capacity")


def blocked(owner: Engine) -> bool:
    """Whether a transaction of this database waits for another's lock."""
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    with owner.connect() as connection:
        return bool(connection.exec_driver_sql(query).scalar_one())


def snapshot(database: Engine) -> set[tuple[str, int | None, str]]:
    """What the shared stream shows now."""
    with database.connect() as connection:
        return {(row[0], row[1], row[2]) for row in connection.exec_driver_sql(SNAPSHOT_SQL)}


def test_a_granted_run_goes_on(yard: Yard) -> None:
    """A look that finds the grant goes on and waits nowhere, also when it looks again while the job runs."""
    made = yard.batch(yard.account("a"), waiting="parked")
    allocate()
    assert look_for_grant(made) == "granted"
    assert yard.row(made).waiting is None
    # The run is here: the grant's clock starts although the keeper has not noted that the resume was accepted.
    assert yard.leases()[0].claim_by is not None
    yard.end(made, yard.begin(made), JobExit.DONE)
    assert look_for_grant(made) == "granted"


def test_an_ending_batch_waits_for_nothing(yard: Yard) -> None:
    """Cancelling or ended: the run goes to its end."""
    made = yard.batch(yard.account("a"))
    yard.cancel(made)
    assert look_for_grant(made) == "ended"


def test_without_a_hold_no_place_is_taken(yard: Yard) -> None:
    """A run that was cleared past ``hold_credits`` is parked: no grant can come to it."""
    made = yard.batch(yard.account("a"), held=False)
    assert look_for_grant(made) == "parked"


def test_few_runs_wait_inside_airflow(yard: Yard) -> None:
    """Whoever looks at the same moment, no more than the limit defer; a place that is left is taken again."""
    account = yard.account("a")
    made = [yard.batch(account) for _ in range(settings().deferred_runs_max + 4)]
    answers = at_once(len(made), lambda number: look_for_grant(made[number]))
    assert answers.count("deferred") == settings().deferred_runs_max
    assert answers.count("parked") == 4
    with unit_of_work() as work:
        figures = reading.waiting(work)
    assert (figures.deferred, figures.parked) == (settings().deferred_runs_max, 4)
    assert figures.batches == figures.partitions == len(made)

    inside, parked = made[answers.index("deferred")], made[answers.index("parked")]
    assert look_for_grant(inside) == "deferred"
    assert look_for_grant(parked) == "parked"
    yard.cancel(inside)
    ask(parked)
    assert look_for_grant(parked) == "deferred"


def test_a_late_look_leaves_a_parked_batch_in_its_place(yard: Yard) -> None:
    """A copy of the task that stood still until its run had ended changes nothing, however often the run parks."""
    made = yard.batch(yard.account("a"))
    with unit_of_work() as work:
        moves.park(work, moves.locked(work, made))
    for _ in range(2):
        assert look_for_grant(made) == "parked"
        assert yard.row(made).waiting == "parked"
        ask(made)
        assert look_for_grant(made) == "deferred"
        with unit_of_work() as work:
            moves.park(work, moves.locked(work, made))


def test_a_look_and_the_allocator_at_once(yard: Yard, owner: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that parks in the very moment of its grant is resumed for it, never forgotten."""
    made = yard.batch(yard.account("a"))
    with ThreadPoolExecutor(1) as pool:
        allocator: list[Future[int]] = []

        def place(*_: object) -> Waiting:
            # The look found no grant; the allocator comes before the look has written where it waits.
            allocator.append(pool.submit(allocate))
            until(lambda: allocator[0].done() or blocked(owner))
            return Waiting.PARKED

        monkeypatch.setattr(waiting, "_place", place)
        assert look_for_grant(made) == "parked"
        assert allocator[0].result() == 1
    assert (yard.row(made).waiting, [one.batch_id for one in yard.resumes()]) == ("parked", [made])


def test_the_stream_shows_levels(yard: Yard, database: Engine) -> None:
    """A snapshot holds the open batches, unclaimed grants and partitions that are over, and no batch that ended."""
    account = yard.account("a")
    first, second = yard.batch(account, partitions=2), yard.batch(account)
    assert snapshot(database) == {(first, None, "open"), (second, None, "open")}
    allocate()
    assert (first, 0, "granted") in snapshot(database)
    order = yard.begin(first)
    assert snapshot(database) == {(first, None, "open"), (second, None, "open")}
    yard.end(first, order, JobExit.DONE)
    assert (first, 0, "over") in snapshot(database)
    yard.cancel(first)
    assert snapshot(database) == {(second, None, "open")}


def test_pool_figures_tell_grants_from_leases(yard: Yard) -> None:
    """The pages see what is granted, what is leased, and why the others wait."""
    yard.gpus(2)
    first, _, third = (yard.batch(yard.account(name)) for name in "abc")
    allocate()
    yard.begin(first)
    with unit_of_work() as work:
        (pool,) = reading.pools(work)
        figures = reading.waiting(work)
    assert (pool.gpus, pool.granted, pool.leased) == (2, 1, 1)
    assert figures.by_reason == {"starting": 1, "gridline_capacity": 1}
    assert yard.row(third).reason_code == "gridline_capacity"
    assert waiting.look_for_grant(third) == "deferred"
