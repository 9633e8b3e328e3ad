"""Attempts: claimed once, ended once, counted only when the engine was healthy, fenced by their lease."""

from datetime import timedelta

import pytest

from gridline import limits
from gridline.batches import moves
from gridline.capacity import attempts, leases, progress, reading
from gridline.capacity.allocator import allocate
from gridline.clock import unix
from gridline.db.work import unit_of_work
from gridline.errors import Unavailable
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.storage import layout
from tests.gridline.capacity.yard import Yard, lease_id
from tests.gridline.ledger.bench import CARD, at_once


@pytest.fixture
def batch(yard: Yard) -> str:
    """A batch with one granted partition."""
    made = yard.batch(yard.account("a"))
    allocate()
    return made


def test_beginning_claims_the_grant(yard: Yard, batch: str) -> None:
    """The claim makes the lease, the batch's start, and the order for the job; without a grant there is none."""
    assert yard.row(batch).first_lease_at is None
    order = yard.begin(batch)
    (lease,) = yard.leases()
    assert order == JobOrder(
        spec_key=layout.partition_spec_key(batch, 0),
        attempt_prefix=layout.attempt_prefix(batch, 0, 1, lease.id),
        earlier_prefixes=(),
        deadline_unix=unix(yard.row(batch).expires_at),
    )
    assert (lease.claimed_at, lease.expires_at) == (
        yard.clock.now(),
        yard.clock.now() + timedelta(seconds=45),
    )
    row, part = yard.row(batch), yard.partition(batch)
    assert (row.status, row.reason_code, row.first_lease_at) == ("in_progress", None, yard.clock.now())
    assert (part.state, part.model_commit) == ("running", CARD["commit"])
    with unit_of_work() as work:
        assert [one.prefix for one in reading.running(work)] == [order.attempt_prefix]
    # A second task for the same partition waits until the first one's lease is gone.
    assert attempts.begin(batch, 0) is None


def test_without_a_grant_or_a_need_nothing_begins(yard: Yard) -> None:
    """No grant: wait. A batch that is cancelling, or a partition that is over: no more attempts."""
    made = yard.batch(yard.account("a"))
    assert attempts.begin(made, 0) is None
    allocate()
    yard.cancel(made)
    assert attempts.begin(made, 0) == "over"
    assert yard.attempts() == []


def test_a_partition_ends_done_and_frees_its_gpu(yard: Yard, batch: str) -> None:
    """DONE gives the lease back at once, keeps what the progress said, and a second end changes nothing."""
    order = yard.begin(batch)
    yard.progress(order, done=8, failed=2)
    assert yard.end(batch, order, JobExit.DONE) == "done"
    yard.clock.advance(minutes=1)
    assert yard.end(batch, order, JobExit.CRASHED) == "done"
    part, (lease,), (attempt,) = yard.partition(batch), yard.leases(), yard.attempts()
    assert (part.state, part.lines_done, part.lines_failed) == ("done", 8, 2)
    assert part.engine_version == "0.32.0"
    assert yard.row(batch).any_line_ran
    assert (lease.outcome, attempt.outcome, attempt.engine_healthy) == ("done", "done", True)
    assert lease.released_at == attempt.ended_at == yard.clock.now() - timedelta(minutes=1)
    assert attempts.begin(batch, 0) == "over"


def test_three_attempts_on_a_healthy_engine_are_all(yard: Yard, batch: str) -> None:
    """A job that dies is tried again with what earlier attempts finished; after the third it is given up."""
    earlier: list[str] = []
    for number in range(1, limits.ATTEMPTS_PER_PARTITION_MAX + 1):
        order = yard.begin(batch)
        assert order.earlier_prefixes == tuple(earlier)
        earlier.append(order.attempt_prefix)
        yard.progress(order, done=1)
        answer = yard.end(batch, order, JobExit.CRASHED if number % 2 else None)
        assert yard.partition(batch).attempts == number
        if number < limits.ATTEMPTS_PER_PARTITION_MAX:
            assert (answer, yard.row(batch).reason_code) == ("again", "retrying")
            assert allocate() == 1
    assert answer == "over"
    assert yard.partition(batch).state == "given_up"
    assert (allocate(), attempts.begin(batch, 0)) == (0, "over")


def test_an_engine_that_was_never_healthy_is_no_attempt(yard: Yard, batch: str) -> None:
    """However often the engine fails to start, the batch waits, pauses, waits again, and nothing is counted."""
    for job_exit in (JobExit.ENGINE_UNHEALTHY, JobExit.CRASHED, None, JobExit.CRASHED):
        order = yard.begin(batch)
        assert order.earlier_prefixes == ()
        yard.progress(order, healthy=False)
        assert yard.end(batch, order, job_exit) == "again"
        assert yard.row(batch).reason_code == "gridline_capacity"
        assert allocate() == 0
        yard.clock.advance(seconds=limits.ENGINE_PAUSE_SECONDS)
        assert allocate() == 1
    assert (yard.partition(batch).attempts, yard.row(batch).any_line_ran) == (0, False)


def test_an_engine_that_died_was_healthy(yard: Yard, batch: str) -> None:
    """Though nobody read the progress in time: the attempt counts, and the next one reads what its segments hold."""
    order = yard.begin(batch)
    yard.progress(order, done=3, healthy=False, deaths=1)
    assert yard.end(batch, order, JobExit.CRASHED) == "again"
    assert yard.partition(batch).attempts == 1
    allocate()
    assert yard.begin(batch).earlier_prefixes == (order.attempt_prefix,)


def test_an_engine_that_is_gone_for_good_ends_what_it_began(yard: Yard, batch: str) -> None:
    """Once lines ran, three failed starts and an hour are enough: the partition is over, and its batch can end."""
    order = yard.begin(batch)
    yard.progress(order, done=3)
    assert yard.end(batch, order, JobExit.CRASHED) == "again"
    answers = []
    for _ in range(limits.ATTEMPTS_PER_PARTITION_MAX + 1):
        assert allocate() == 1
        order = yard.begin(batch)
        yard.progress(order, healthy=False)
        answers.append(yard.end(batch, order, JobExit.ENGINE_UNHEALTHY))
        yard.clock.advance(seconds=limits.ENGINE_GONE_SECONDS / limits.ATTEMPTS_PER_PARTITION_MAX)
    assert answers == [*["again"] * limits.ATTEMPTS_PER_PARTITION_MAX, "over"]
    assert (yard.partition(batch).state, yard.partition(batch).attempts) == ("given_up", 1)


def test_an_engine_that_comes_back_is_not_gone(yard: Yard, batch: str) -> None:
    """A healthy attempt in between begins the hour anew, and two failed starts far apart are no proof."""
    for healthy in (True, False, False, True, False, False):
        order = yard.begin(batch)
        yard.progress(order, healthy=healthy, done=3 * healthy)
        exits = JobExit.CRASHED if healthy else JobExit.ENGINE_UNHEALTHY
        assert yard.end(batch, order, exits) == "again"
        yard.clock.advance(seconds=limits.ENGINE_GONE_SECONDS)
        assert allocate() == 1
    assert yard.partition(batch).state == "waiting"


@pytest.mark.parametrize(("healthy", "counted"), [(True, 1), (False, 0)])
def test_a_lapse_counts_like_a_crash(yard: Yard, batch: str, healthy: bool, counted: int) -> None:
    """A lease that lapsed is one of the three attempts only if its engine was seen healthy."""
    order = yard.begin(batch)
    yard.progress(order, healthy=healthy)
    last = progress.read(yard.store, order.attempt_prefix)
    assert last is not None
    with unit_of_work() as work:
        row = moves.locked(work, batch)
        part = leases.partition(work, row, 0)
        progress.note(work, last, batch=row, part=part, lease_id=lease_id(order))
    yard.clock.advance(seconds=45)
    assert leases.lapse() == 1
    assert (yard.partition(batch).attempts, yard.partition(batch).state) == (counted, "waiting")
    # No line has run, so the batch waits as it did before: only a batch that has begun retries.
    assert yard.row(batch).reason_code == "gridline_capacity"


@pytest.mark.parametrize(("done", "reason"), [(0, "gridline_capacity"), (3, "retrying")])
def test_what_a_lost_job_leaves_waits_as_retrying(yard: Yard, batch: str, done: int, reason: str) -> None:
    """Once a line has run, a batch that lost its job says so until its next lease, also while every GPU is taken."""
    order = yard.begin(batch)
    yard.progress(order, done=done)
    yard.end(batch, order, JobExit.CRASHED)
    assert yard.row(batch).reason_code == reason
    yard.gpus(0)
    since = yard.row(batch).reason_since
    yard.clock.advance(minutes=1)
    allocate()
    assert (yard.row(batch).status, yard.row(batch).reason_code) == ("in_progress", reason)
    assert yard.row(batch).reason_since == since
    yard.gpus(1)
    allocate()
    yard.begin(batch)
    assert yard.row(batch).reason_code is None


def test_a_stopped_job_is_not_counted(yard: Yard, batch: str) -> None:
    """SIGTERM costs no attempt; past the deadline, or cancelled, there is no next one."""
    order = yard.begin(batch)
    yard.progress(order, done=3)
    assert yard.end(batch, order, JobExit.STOPPED) == "again"
    assert yard.partition(batch).attempts == 0
    allocate()
    order = yard.begin(batch)
    yard.cancel(batch)
    assert yard.end(batch, order, JobExit.STOPPED) == "over"
    assert yard.leases(live=True) == []


def test_a_lease_without_progress_lapses_and_its_job_is_fenced(yard: Yard, batch: str) -> None:
    """The partition is tried again under a new lease; the old job is told to stop and can end nothing."""
    old = yard.begin(batch)
    with unit_of_work() as work:
        assert leases.renew(work, lease_id(old))
    yard.clock.advance(seconds=44)
    assert leases.lapse() == 0
    yard.clock.advance(seconds=1)
    assert leases.lapse() == 1
    assert b"lease_lost" in yard.store.read(layout.stop_key(old.attempt_prefix))
    with unit_of_work() as work:
        assert not leases.renew(work, lease_id(old))

    allocate()
    new = yard.begin(batch)
    assert new.earlier_prefixes == (old.attempt_prefix,)
    assert yard.end(batch, old, JobExit.DONE) == "again"
    assert yard.partition(batch).state == "running"
    assert [one.id for one in yard.leases(live=True)] == [lease_id(new)]


def test_a_renewed_lease_lives_on(yard: Yard, batch: str) -> None:
    """Each renewal gives the full time again."""
    order = yard.begin(batch)
    for _ in range(3):
        yard.clock.advance(seconds=40)
        with unit_of_work() as work:
            assert leases.renew(work, lease_id(order))
    assert leases.lapse() == 0


def test_an_unclaimed_grant_lapses_and_nothing_started(yard: Yard, batch: str) -> None:
    """Sixty seconds after the grant it is taken back, no attempt is made, and the batch is in the queue again."""
    yard.clock.advance(seconds=59)
    assert leases.lapse() == 0
    yard.clock.advance(seconds=1)
    assert leases.lapse() == 1
    assert attempts.begin(batch, 0) is None
    assert (yard.attempts(), yard.row(batch).first_lease_at) == ([], None)
    assert allocate() == 1
    assert [one.outcome for one in yard.leases()] == ["unclaimed", None]


@pytest.mark.thorough
def test_claim_and_lapse_at_once(yard: Yard) -> None:
    """Of a claim and a lapse at the same moment one wins: either an attempt runs, or the grant is gone."""
    yard.gpus(8)
    account = yard.account("a", leases_max=8)
    made = yard.batch(account, partitions=8)
    assert allocate() == 8
    yard.clock.advance(seconds=60)

    def act(number: int) -> object:
        return leases.lapse() if number % 2 else attempts.begin(made, number // 2)

    answers = at_once(16, act)
    orders = [one for one in answers if isinstance(one, JobOrder)]
    lapsed = sum(one for one in answers if isinstance(one, int))
    assert not [one for one in answers if isinstance(one, Exception)]
    assert len(orders) + lapsed == 8
    live = {one.id for one in yard.leases(live=True)}
    assert live == {lease_id(one) for one in orders} == {one.lease_id for one in yard.attempts()}


def test_one_grant_begun_by_many_at_once(yard: Yard, batch: str) -> None:
    """Ten tasks for one partition start one job, and ten ends end it once."""
    orders = [one for one in at_once(10, lambda _: attempts.begin(batch, 0)) if one is not None]
    assert len(orders) == 1
    yard.progress(orders[0])
    answers = at_once(10, lambda _: yard.end(batch, orders[0], JobExit.CRASHED))
    assert answers == ["again"] * 10
    assert (yard.partition(batch).attempts, len(yard.attempts())) == (1, 1)


def test_a_job_may_go_on_as_long_as_its_lease(
    yard: Yard, batch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Released is a no, however it came; a database that is away is a yes, since nobody knows."""
    order = yard.begin(batch)
    assert attempts.may_go_on(lease_id(order))
    yard.clock.advance(seconds=limits.LEASE_TTL_SECONDS)
    assert leases.lapse() == 1
    assert not attempts.may_go_on(lease_id(order))

    def away() -> None:
        raise Unavailable("away")

    monkeypatch.setattr(attempts, "unit_of_work", away)
    assert attempts.may_go_on(lease_id(order))
