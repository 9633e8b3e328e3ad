"""Product B7 and B8, row by row: what each wait becomes when its bound passes. Days in milliseconds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select, update

from gridline.batches import cancelling, holding, moves
from gridline.batches.states import TERMINAL
from gridline.batches.tables import Batch, Partition, RunRequest
from gridline.capacity import attempts, budget, operator_hold
from gridline.capacity.allocator import allocate
from gridline.customers import accounts
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.files.tables import File
from gridline.keeper.credit import resume_funded
from gridline.keeper.deadlines import Deadlines
from gridline.keeper.progress import ProgressFollower
from gridline.ledger import posting, proving, reading
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from tests.gridline.batches.bench import CREDIT, Bench
from tests.gridline.capacity.yard import Yard, lease_id

pytestmark = pytest.mark.thorough

START_HOURS = {"24h": 12, "72h": 48}


@dataclass
class World:
    """A keeper, a pool without a GPU, an account with 10 credits, and its batches."""

    yard: Yard
    bench: Bench
    deadlines: Deadlines = field(init=False)
    follower: ProgressFollower = field(init=False)

    def __post_init__(self) -> None:
        self.yard.gpus(0)
        self.deadlines = Deadlines(monotonic=self.yard.seconds)
        self.follower = ProgressFollower(monotonic=self.yard.seconds)

    def keep(self) -> None:
        """What the keeper does all the time, once."""
        allocate()
        self.follower.follow()
        self.deadlines.enforce()
        resume_funded()

    def go_to(self, moment: datetime) -> None:
        """Let the hours pass, with the keeper at work in each, up to the moment."""
        while self.yard.clock.moment < moment:
            self.yard.clock.moment = min(self.yard.clock.moment + timedelta(hours=1), moment)
            self.keep()

    def run(self, batch: Batch, *, done: int, healthy: bool = True) -> JobOrder:
        """Claim the grant of the first partition and have its job tell how far it is."""
        order = self.yard.begin(batch.id)
        if done:
            self.bench.segment(batch, 0, list(range(done)), lease=lease_id(order))
        self.yard.progress(order, done=done, healthy=healthy)
        self.follower.follow()
        return order

    def shown(self, batch: Batch) -> tuple[str, str | None]:
        """Status and reason."""
        row = self.yard.row(batch.id)
        return row.status, row.reason_code

    def failed(self, batch: Batch) -> str | None:
        """The code of a batch that failed as B7 says: no file, no charge, nothing held, its slot free."""
        row = self.yard.row(batch.id)
        assert (row.status, row.reason_code, row.completed, row.failed) == ("failed", None, 0, 0)
        assert (row.output_file_id, row.error_file_id) == (None, None)
        with unit_of_work() as work:
            held = reading.balance(work, row.account_id)
            assert (held.available_nanos, held.held_nanos) == (10 * CREDIT, 0)
            assert proving.prove(work) == []
            assert work.session.get_one(Account, row.account_id).open_batches == 0
        return row.error_code


@pytest.fixture
def world(yard: Yard) -> World:
    """Nothing runs yet."""
    with unit_of_work() as work:
        account = accounts.open_account(work, "tester")
        posting.grant(work, account.id, 10 * CREDIT, actor="operator", why="test", key="first")
    return World(yard, Bench(yard.clock, yard.store, account.id))


@pytest.mark.parametrize("window", ["24h", "72h"])
def test_without_a_gpu_it_fails_at_the_start_bound(world: World, window: str) -> None:
    """A batch waits in progress for 12, or 48, hours to the second, then fails for want of capacity."""
    batch = world.bench.held(window=window)
    bound = world.yard.clock.now() + timedelta(hours=START_HOURS[window])
    world.keep()
    assert world.shown(batch) == ("in_progress", "gridline_capacity")
    world.go_to(bound - timedelta(seconds=1))
    assert world.shown(batch) == ("in_progress", "gridline_capacity")
    world.go_to(bound)
    assert world.failed(batch) == "capacity_unavailable"


@pytest.mark.parametrize("window", ["24h", "72h"])
def test_a_run_that_never_began_fails_at_the_start_bound(world: World, window: str) -> None:
    """Airflow away for days: the batch stays ``starting`` in validating, then fails and never ran."""
    batch = world.bench.create(window=window)
    bound = world.yard.clock.now() + timedelta(hours=START_HOURS[window])
    world.go_to(bound - timedelta(seconds=1))
    assert world.shown(batch) == ("validating", "starting")
    world.go_to(bound)
    assert world.failed(batch) == "capacity_unavailable"


def poor(world: World, *, window: str = "72h") -> Batch:
    """A validated batch that can cost more than its account has."""
    batch = world.bench.create(window=window)
    world.yard.change(
        batch.id, validated_at=world.yard.clock.now(), card={"id": "m"}, model="m", ceiling_nanos=11 * CREDIT
    )
    with unit_of_work() as work:
        part = Partition(
            batch_id=batch.id,
            number=0,
            account_id=batch.account_id,
            lines=2,
            tokens_estimate=2,
            state="waiting",
        )
        work.session.add(part)
        work.session.execute(update(RunRequest).values(done_at=work.now))  # its run was started
    return batch


def test_a_72h_batch_waits_48_hours_for_credit(world: World) -> None:
    """It waits in validating, parked, and fails with ``insufficient_quota`` if no credit comes."""
    batch = poor(world)
    bound = world.yard.clock.now() + timedelta(hours=48)
    assert holding.hold_credits(batch.id) == "parked"
    world.go_to(bound - timedelta(seconds=1))
    assert world.shown(batch) == ("validating", "customer_credit")
    world.go_to(bound)
    assert world.failed(batch) == "insufficient_quota"


def test_credit_and_capacity_share_the_48_hours(world: World) -> None:
    """Credit that comes after 47 hours leaves one hour for a GPU, not another 48."""
    batch = poor(world)
    created = world.yard.clock.now()
    holding.hold_credits(batch.id)
    world.go_to(created + timedelta(hours=47))
    with unit_of_work() as work:
        posting.grant(work, batch.account_id, 5 * CREDIT, actor="operator", why="top-up", key="second")
    assert resume_funded() == 1
    assert holding.hold_credits(batch.id) == "held"
    world.go_to(created + timedelta(hours=48))
    row = world.yard.row(batch.id)
    assert (row.status, row.error_code) == ("failed", "capacity_unavailable")


def test_a_lease_alone_is_no_start(world: World) -> None:
    """A batch whose model still loads at its start bound is stopped, and fails although it had a lease."""
    batch = world.bench.held()
    bound = world.yard.clock.now() + timedelta(hours=12)
    world.go_to(bound - timedelta(seconds=10))
    world.yard.gpus(1)
    world.keep()
    order = world.run(batch, done=0, healthy=False)
    world.go_to(bound)
    assert world.yard.row(batch.id).status == "in_progress"  # its job is told to stop first
    attempts.end(batch.id, 0, lease_id(order), JobExit.STOPPED)
    world.keep()
    assert world.failed(batch) == "capacity_unavailable"


def test_once_a_line_ran_only_the_deadline_counts(world: World) -> None:
    """Past the start bound it goes on; at ``expires_at`` what is done is delivered and charged, the rest expired."""
    batch = world.bench.held(lines=(3,))
    created = world.yard.clock.now()
    world.yard.gpus(1)
    world.keep()
    order = world.run(batch, done=2)
    attempts.end(batch.id, 0, lease_id(order), JobExit.CRASHED)
    world.yard.gpus(0)
    world.keep()
    assert world.shown(batch) == ("in_progress", "retrying")
    world.go_to(created + timedelta(hours=24) - timedelta(seconds=1))
    assert world.shown(batch) == ("in_progress", "retrying")
    world.go_to(created + timedelta(hours=24))
    row = world.yard.row(batch.id)
    assert (row.status, row.completed, row.failed, row.total) == ("expired", 2, 1, 3)
    with unit_of_work() as work:
        output, error = (work.session.get_one(File, one) for one in (row.output_file_id, row.error_file_id))
        assert proving.prove(work) == []
        assert reading.balance(work, row.account_id).held_nanos == 0
        assert reading.balance(work, row.account_id).available_nanos < 10 * CREDIT
    assert world.yard.store.read(output.object_key).count(b"\n") == 2
    assert b'"batch_expired"' in world.yard.store.read(error.object_key)


def test_a_72h_batch_that_starts_has_a_day_left(world: World) -> None:
    """In the last second before the bound it starts; at the bound a free GPU starts nothing, granted or not."""
    first, second = world.bench.held(window="72h"), world.bench.held(window="72h")
    bound = world.yard.clock.now() + timedelta(hours=48)
    world.go_to(bound - timedelta(seconds=1))
    world.yard.gpus(2)
    allocate()
    world.run(first, done=1)
    row = world.yard.row(first.id)
    assert row.first_lease_at is not None
    assert row.expires_at - row.first_lease_at >= timedelta(hours=24)
    world.yard.clock.moment = bound
    assert attempts.begin(second.id, 0) is None
    assert allocate() == 0
    world.keep()
    assert world.shown(first) == ("in_progress", None)
    assert world.yard.row(second.id).error_code == "capacity_unavailable"


def test_the_platforms_daily_limit_is_a_wait_for_capacity(world: World) -> None:
    """It shows in progress while every day's budget is nothing, and its bound is the start bound."""
    world.yard.gpus(1)
    with unit_of_work() as work:
        budget.set_limit(work, 0, actor="operator:ada", why="test")
    batch = world.bench.held()
    bound = world.yard.clock.now() + timedelta(hours=12)
    world.go_to(bound - timedelta(seconds=1))
    assert world.shown(batch) == ("in_progress", "platform_daily_limit")
    world.go_to(bound)
    assert world.failed(batch) == "capacity_unavailable"


def test_clocks_go_on_while_an_operator_holds_it(world: World) -> None:
    """Held, its status stays and its start bound passes all the same."""
    world.yard.gpus(1)
    batch = world.bench.held()
    with unit_of_work() as work:
        operator_hold.hold(work, batch.id, note="A look", actor="operator:ada")
    bound = world.yard.clock.now() + timedelta(hours=12)
    world.go_to(bound - timedelta(seconds=1))
    assert world.shown(batch) == ("validating", "held_by_operator")
    world.go_to(bound)
    assert world.failed(batch) == "capacity_unavailable"


def test_a_batch_that_never_started_fails_also_after_its_deadline(world: World) -> None:
    """While nobody enforced anything both its bounds passed: no line ran, so it fails, and does not expire."""
    batch = world.bench.held()
    world.go_to(world.yard.clock.now() + timedelta(hours=25))
    assert world.failed(batch) == "capacity_unavailable"


def test_a_line_that_no_progress_told_of_counts(world: World) -> None:
    """A job that died between its segment and its progress has run a line: the start bound ends nothing any more."""
    batch = world.bench.held(lines=(2,))
    bound = world.yard.clock.now() + timedelta(hours=12)
    world.yard.gpus(1)
    world.keep()
    order = world.yard.begin(batch.id)
    world.bench.segment(batch, 0, [0], lease=lease_id(order))
    attempts.end(batch.id, 0, lease_id(order), None)
    world.yard.gpus(0)
    world.go_to(bound)
    row = world.yard.row(batch.id)
    assert (row.status, row.any_line_ran) == ("in_progress", True)
    world.go_to(bound + timedelta(hours=12))
    assert world.yard.row(batch.id).status == "expired"


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_cancel_ends_within_two_minutes(world: World, stubborn: bool) -> None:
    """A job that stops is waited for, one that does not is not: 120 seconds at most, what is done delivered."""
    batch = world.bench.held(lines=(3,))
    world.yard.gpus(1)
    world.keep()
    order = world.run(batch, done=1)
    with unit_of_work() as work:
        cancelling.cancel(work, account_id=batch.account_id, batch_id=batch.id, actor="token:t")
    asked = world.yard.clock.now()
    world.keep()
    if not stubborn:
        attempts.end(batch.id, 0, lease_id(order), JobExit.STOPPED)
    sequence = 1
    while world.yard.row(batch.id).status not in TERMINAL:
        world.yard.clock.advance(seconds=2)
        sequence += 1
        world.yard.progress(order, done=1, sequence=sequence)
        world.keep()
    row = world.yard.row(batch.id)
    assert world.yard.clock.now() - asked <= timedelta(seconds=120)
    assert (row.status, row.completed, row.cancelled) == ("cancelled", 1, 2)


Step = Callable[[World, Batch], None]


@pytest.mark.parametrize("hours", [-1, -0.1, 0.1, 1])
def test_a_clock_that_is_set_ends_nothing_early(world: World, hours: float) -> None:
    """An hour back or forward: a waiting and a running batch stand, and no duration is negative."""
    waiting, running = world.bench.held(), world.bench.held()
    world.yard.gpus(1)
    world.keep()
    (lease,) = world.yard.leases(live=True)
    running, waiting = (running, waiting) if lease.batch_id == running.id else (waiting, running)
    world.run(running, done=1)
    world.keep()
    world.yard.clock.advance(hours=hours)
    # Its own time goes on as before: the job writes its next heartbeat.
    world.follower._monotonic = lambda: 0.0  # the process's own clock is not set
    world.keep()
    assert [world.shown(one)[0] for one in (waiting, running)] == ["in_progress"] * 2
    with unit_of_work() as work:
        for one in work.session.scalars(select(Batch)):
            row = moves.locked(work, one.id)
            assert row.in_progress_at is not None
            assert row.created_at <= row.in_progress_at
