"""Attempts whose job waits for a machine elsewhere: kept, found again, and ended."""

import json
from datetime import timedelta

import pytest

from gridline.capacity import leases, remote
from gridline.capacity.allocator import allocate
from gridline.capacity.pools import AwsBatch
from gridline.errors import Unavailable
from gridline.limits import LEASE_TTL_SECONDS, PLACING_SECONDS_MAX
from gridline.lines.exits import JobExit
from gridline.settings import Settings
from gridline.storage import layout
from tests.gridline.capacity.yard import Yard, lease_id

PLACE = AwsBatch("gpus", "gridline-gpu")


def jobs_run(monkeypatch: pytest.MonkeyPatch, *, elsewhere: bool) -> None:
    """Let the yard's pool run its jobs there, or here."""
    pool = {"name": "local", "gpus": 1, "models": ["*"], "datacenter": False}
    place = {"aws_batch": {"job_queue": "gpus", "job_definition": "gridline-gpu"}} if elsewhere else {}
    monkeypatch.setattr(remote, "settings", lambda: Settings(pools=json.dumps([pool | place])))


@pytest.fixture
def batch(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> str:
    """A batch with one granted partition in a pool whose jobs run elsewhere."""
    jobs_run(monkeypatch, elsewhere=True)
    made = yard.batch(yard.account("a"))
    allocate()
    return made


def test_the_leases_pool_says_where_its_job_runs(
    yard: Yard, batch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place is asked of the setting anew for each lease, by its pool's name."""
    lease = lease_id(yard.begin(batch))
    assert remote.place_of(lease) == PLACE
    jobs_run(monkeypatch, elsewhere=False)
    assert remote.place_of(lease) is None


def test_a_begun_attempt_is_found_again(yard: Yard, batch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of a live attempt is the one that it began with; here, or without a claim, there is none."""
    assert remote.begun(batch, 0) is None
    first = yard.begin(batch)
    assert remote.begun(batch, 0) == first
    yard.progress(first)
    yard.end(batch, first, JobExit.CRASHED)
    assert remote.begun(batch, 0) is None
    allocate()
    second = yard.begin(batch)
    assert remote.begun(batch, 0) == second
    assert second.earlier_prefixes == (first.attempt_prefix,)
    jobs_run(monkeypatch, elsewhere=False)
    assert remote.begun(batch, 0) is None


def test_a_job_without_a_machine_keeps_its_lease(yard: Yard, batch: str) -> None:
    """Placing takes minutes, in which no heartbeat can come; a job that runs is renewed by its heartbeat alone."""
    lease = lease_id(yard.begin(batch))
    for _ in range(5):
        yard.clock.advance(seconds=LEASE_TTL_SECONDS - 5)
        assert remote.unwanted([lease], placing=[lease]) == set()
        assert leases.lapse() == 0
    assert yard.leases()[0].expires_at == yard.clock.now() + timedelta(seconds=LEASE_TTL_SECONDS)
    yard.clock.advance(seconds=LEASE_TTL_SECONDS)
    assert remote.unwanted([lease], placing=[]) == set()
    assert leases.lapse() == 1
    assert remote.unwanted([lease], placing=[]) == {lease}


def test_a_job_that_is_never_placed_is_given_up(yard: Yard, batch: str) -> None:
    """A queue without machines does not keep a lease for ever: it is the batch's start bound that counts then."""
    lease = lease_id(yard.begin(batch))
    yard.clock.advance(seconds=PLACING_SECONDS_MAX)
    assert remote.unwanted([lease], placing=[lease]) == {lease}
    assert remote.unwanted([lease], placing=[]) == set()


def test_a_cancelled_batch_waits_for_no_machine(yard: Yard, batch: str) -> None:
    """A job that runs reads its stop marker and flushes; one without a machine cannot, so it is not wanted any more."""
    lease = lease_id(yard.begin(batch))
    yard.cancel(batch)
    assert remote.unwanted([lease], placing=[]) == set()
    assert remote.unwanted([lease], placing=[lease]) == {lease}


def test_a_late_batch_waits_for_no_machine(yard: Yard, batch: str) -> None:
    """Past its deadline nothing would come of the machine."""
    yard.change(batch, any_line_ran=True)
    yard.clock.advance(hours=23, minutes=50)
    lease = lease_id(yard.begin(batch))
    assert remote.unwanted([lease], placing=[lease]) == set()
    yard.clock.advance(minutes=10)
    assert remote.unwanted([lease], placing=[lease]) == {lease}


def test_without_the_database_every_job_is_wanted(
    yard: Yard, batch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that is away ends no job: its results are safe either way."""
    lease = lease_id(yard.begin(batch))

    def away() -> None:
        raise Unavailable("away")

    monkeypatch.setattr(remote, "unit_of_work", away)
    assert remote.unwanted([lease], placing=[lease]) == set()


def test_the_end_tells_whoever_still_runs(yard: Yard, batch: str) -> None:
    """A second job of the lease, of which nobody knows, reads that it has lost it; the GPU is free at once."""
    order = yard.begin(batch)
    assert remote.end(batch, 0, lease_id(order), JobExit.CRASHED) == "again"
    assert yard.leases(live=True) == []
    stop = json.loads(yard.store.read(layout.stop_key(order.attempt_prefix)))
    assert stop["reason"] == "lease_lost"
