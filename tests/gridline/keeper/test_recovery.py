"""What operators and crashes leave behind, and that the keeper ends each right: with the proof of everything at the end."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Engine, text

from gridline import limits
from gridline.batches import cancelling, finishing, holding, moves, validating
from gridline.batches.tables import Batch, Partition, RunRequest
from gridline.capacity import allocator, attempts, leases, pools, waiting
from gridline.capacity.tables import Lease
from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.db.work import unit_of_work
from gridline.keeper.deadlines import Deadlines
from gridline.keeper.dispatch import dispatch
from gridline.keeper.progress import ProgressFollower
from gridline.keeper.reconcile import reconcile
from gridline.ledger import posting
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.proof import platform
from gridline.storage.objects import Store
from tests.gridline.batches.bench import CREDIT
from tests.gridline.keeper.fake_airflow import FakeAirflow
from tests.gridline.proof.sound import SoundBench, lasting
from tests.racing import together


@pytest.fixture
def bench(database: Engine, clock: FrozenClock, store: Store) -> Iterator[SoundBench]:
    """An account with credit and slots, and a GPU; whatever a test does to its batches, the proof must hold after it."""
    with unit_of_work() as work:
        pools.seed(work, '[{"name": "local", "gpus": 1, "models": ["*"], "datacenter": false}]')
        account = accounts.open_account(work, "tester")
        account.open_batches_max = 20
        posting.grant(work, account.id, 10 * CREDIT, actor="operator", why="test", key="first")
    yield SoundBench(clock, store, account.id)
    assert platform.prove_with_files().broken == []


def accepted(bench: SoundBench) -> str:
    return bench.create().id


def held(bench: SoundBench) -> str:
    return bench.held(lines=(3,)).id


def started(bench: SoundBench) -> str:
    """Claimed, and nothing ran yet."""
    return bench.running()


def half_done(bench: SoundBench) -> str:
    """One closed segment, and the partition not over."""
    batch = bench.held(lines=(3,))
    bench.results(batch.id)
    bench.claim(batch, 0, lease=f"l{batch.id}", state="waiting")
    return batch.id


def collated(bench: SoundBench) -> str:
    """Its files are written and its end is not."""
    batch_id = half_done(bench)
    with unit_of_work() as work:
        work.session.get_one(Partition, (batch_id, 0)).state = "done"
    finishing.collate(batch_id)
    return batch_id


FAILED, DONE = ("failed", "server_error"), ("completed", None)
POINTS: dict[Callable[[SoundBench], str], tuple[str, str | None]] = {
    accepted: FAILED,
    held: FAILED,
    started: FAILED,
    half_done: DONE,
    collated: DONE,
}


def end_of(batch_id: str) -> tuple[str, str | None]:
    with unit_of_work() as work:
        row = work.session.get_one(Batch, batch_id)
        return row.status, row.error_code


def outbox_sent() -> None:
    """Every run that was asked for is accepted."""
    with unit_of_work() as work:
        work.session.execute(text("UPDATE run_requests SET done_at = created_at"))


def lapse(bench: SoundBench) -> None:
    """Time for a lease that nobody renews."""
    bench.clock.advance(seconds=limits.LEASE_TTL_SECONDS + 1)
    leases.lapse()


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("state", ["failed", "success"])
def test_a_run_that_an_operator_marked(
    bench: SoundBench, fake: FakeAirflow, point: Callable[[SoundBench], str], state: str
) -> None:
    """Marked at any moment, before or after validation, its batch ends: failed if nothing ran, else with what is done."""
    batch_id = point(bench)
    outbox_sent()
    fake.run(batch_id, state)
    reconcile(fake.client())
    assert end_of(batch_id) == POINTS[point]
    lapse(bench)


@pytest.mark.parametrize("point", [held, started, half_done, collated])
def test_a_run_that_was_deleted_after_validation(
    bench: SoundBench, fake: FakeAirflow, point: Callable[[SoundBench], str]
) -> None:
    """The batch ends as if its run had been marked failed."""
    batch_id = point(bench)
    outbox_sent()
    reconcile(fake.client())
    assert end_of(batch_id) == POINTS[point]
    lapse(bench)


def test_a_run_that_was_deleted_before_validation(bench: SoundBench, fake: FakeAirflow) -> None:
    """The batch gets a new run, in the same Airflow, under the same id."""
    batch_id = accepted(bench)
    dispatch(fake.client())
    fake.runs.clear()
    reconcile(fake.client())
    dispatch(fake.client())
    assert list(fake.runs) == [batch_id]
    assert end_of(batch_id) == ("validating", None)


def test_a_batch_whose_run_was_never_asked_for(bench: SoundBench, fake: FakeAirflow) -> None:
    """A batch without a request for its run (a restored table, a hand that deleted rows) is given one."""
    batch_id = accepted(bench)
    with unit_of_work() as work:
        work.session.query(RunRequest).delete()
    reconcile(fake.client())
    dispatch(fake.client())
    assert list(fake.runs) == [batch_id]


@pytest.mark.parametrize("kind", ["completed", "failed", "cancelled"])
def test_tasks_that_are_cleared_after_the_end(bench: SoundBench, fake: FakeAirflow, kind: str) -> None:
    """Every task of an ended batch may run again, in any order, and changes nothing that lasts."""
    batch_id = getattr(bench, kind)()
    before = lasting(bench.store)
    bench.clock.advance(hours=1)
    assert validating.validate(batch_id) == []
    assert holding.hold_credits(batch_id) == "ended"
    assert waiting.look_for_grant(batch_id) == "ended"
    if kind != "cancelled":
        assert attempts.begin(batch_id, 0) == "over"
        assert attempts.end(batch_id, 0, "lease_none", JobExit.DONE) in ("done", "over")
    assert finishing.collate(batch_id) == finishing.finish(batch_id, run_over=True) == kind
    fake.run(batch_id, "failed")
    reconcile(fake.client())
    assert lasting(bench.store) == before


def test_a_grant_that_nobody_claims(bench: SoundBench) -> None:
    """It lapses, the GPU is free again, and the batch gets another grant that can be claimed."""
    batch_id = held(bench)
    allocator.allocate()
    bench.clock.advance(seconds=limits.GRANT_CLAIM_SECONDS + 1)
    assert leases.lapse() == 1
    allocator.allocate()
    assert isinstance(attempts.begin(batch_id, 0), JobOrder)
    with unit_of_work() as work:
        assert [one.outcome for one in work.session.query(Lease).order_by(Lease.fence)] == ["unclaimed", None]


def test_a_lease_whose_job_fell_silent(bench: SoundBench) -> None:
    """It lapses; the word of its job, which comes after all, takes nothing from the next attempt."""
    batch_id = held(bench)
    allocator.allocate()
    first = attempts.begin(batch_id, 0)
    assert isinstance(first, JobOrder)
    lapse(bench)
    bench.clock.advance(seconds=limits.ENGINE_PAUSE_SECONDS)
    allocator.allocate()
    second = attempts.begin(batch_id, 0)
    assert isinstance(second, JobOrder)
    assert attempts.end(batch_id, 0, first.lease_id, JobExit.DONE) == "again"
    with unit_of_work() as work:
        assert leases.live(work, batch_id, 0).id == second.lease_id  # type: ignore[union-attr]
        assert work.session.get_one(Partition, (batch_id, 0)).state == "running"


def test_deadlines_that_passed_while_the_keeper_was_away(bench: SoundBench, fake: FakeAirflow) -> None:
    """After five days without a keeper every batch ends at its first looks, whatever it was about."""
    made = [point(bench) for point in (accepted, held, half_done, started)]
    with unit_of_work() as work:
        moves.locked(work, made[1]).waiting = "parked"
    outbox_sent()
    bench.clock.advance(days=5)

    def seconds() -> float:
        return bench.clock.moment.timestamp()

    keeper = Deadlines(monotonic=seconds)
    for _ in range(2):
        ProgressFollower().follow()
        keeper.enforce()
        reconcile(fake.client())
        bench.clock.advance(seconds=61)
    ends = [end_of(batch_id)[0] for batch_id in made]
    assert set(ends) <= {"expired", "failed"}
    assert ends[2] == "expired"


def test_two_keepers_at_once(bench: SoundBench, fake: FakeAirflow) -> None:
    """A standby that takes over while the first still works does the same beside it, and each thing is done once."""
    lost, late, fresh = half_done(bench), half_done(bench), accepted(bench)
    outbox_sent()
    fake.run(fresh, "running")
    with unit_of_work() as work:
        cancelling.cancel(work, account_id=bench.account_id, batch_id=late, actor="token:t")

    def keeper() -> None:
        client = fake.client()
        dispatch(client)
        ProgressFollower().follow()
        Deadlines().enforce()
        allocator.allocate()
        reconcile(client)

    assert together(6, keeper) == [None] * 6
    assert (end_of(lost)[0], end_of(late)[0], end_of(fresh)[0]) == ("completed", "cancelled", "validating")
