"""The allocator: grants in the queue's order, reasons for the rest, once, whoever runs it."""

import threading
from datetime import timedelta

import pytest

from gridline.capacity import allocator, leases, queue
from gridline.capacity.allocator import allocate
from gridline.db.work import Work, unit_of_work
from gridline.lines.exits import JobExit
from tests.gridline.capacity.yard import Yard
from tests.gridline.ledger.bench import at_once


def test_a_grant_and_a_reason(yard: Yard) -> None:
    """One GPU, two batches: one is granted and keeps its status, the other waits in progress and says why."""
    first = yard.batch(yard.account("a"))
    yard.clock.advance(minutes=1)
    second = yard.batch(yard.account("b"))
    assert allocate() == 1
    (lease,) = yard.leases()
    assert (lease.batch_id, lease.partition, lease.pool) == (first, 0, "local")
    assert lease.claim_by == yard.clock.now() + timedelta(seconds=60)
    assert yard.row(first).status == "validating"
    waits = yard.row(second)
    assert (waits.status, waits.reason_code, waits.reason_since) == (
        "in_progress",
        "gridline_capacity",
        yard.clock.now(),
    )


def test_many_new_waits_are_stored_some_at_a_time(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look stores a bounded number of reasons, grants whatever it can, and the next looks store the rest."""
    monkeypatch.setattr(allocator, "WAITS_MAX", 2)
    account = yard.account("a")
    made = [yard.batch(account) for _ in range(6)]
    told = []
    for _ in range(4):
        allocate()
        told.append([yard.row(one).reason_code for one in made].count("gridline_capacity"))
    assert (told, len(yard.leases())) == ([2, 4, 5, 5], 1)


def test_running_it_again_changes_nothing(yard: Yard) -> None:
    """A second run grants nothing and leaves ``since`` as it was."""
    for name in "ab":
        yard.batch(yard.account(name))
    allocate()
    since = {one.batch_id: yard.row(one.batch_id).reason_since for one in yard.leases()}
    yard.clock.advance(minutes=5)
    assert allocate() == 0
    assert {one.batch_id: yard.row(one.batch_id).reason_since for one in yard.leases()} == since
    assert len(yard.leases()) == 1


def test_an_account_at_its_limit_keeps_validating(yard: Yard) -> None:
    """A batch that waits for its own account stays ``validating``; once in progress it never goes back."""
    yard.gpus(5)
    account = yard.account("a", leases_max=1)
    yard.batch(account)
    yard.clock.advance(minutes=1)
    second = yard.batch(account)
    assert allocate() == 1
    assert (yard.row(second).status, yard.row(second).reason_code) == ("validating", "account_capacity")
    yard.change(second, status="in_progress", in_progress_at=yard.clock.now(), reason_code="retrying")
    allocate()
    assert (yard.row(second).status, yard.row(second).reason_code) == ("in_progress", "account_capacity")


def test_who_is_not_in_the_queue(yard: Yard) -> None:
    """A batch without a hold, one without a partition that waits, and one that is ending get nothing."""
    account = yard.account("a")
    unheld, empty, ending = (
        yard.batch(account, held=False),
        yard.batch(account, partitions=0),
        yard.batch(account),
    )
    yard.cancel(ending)
    assert allocate() == 0
    assert [yard.row(one).reason_code for one in (unheld, empty)] == ["starting"] * 2


def test_a_parked_batch_is_resumed_once(yard: Yard) -> None:
    """The first grant asks the keeper for a resume; further ones ride along, and no clock runs until it is accepted."""
    batch = yard.batch(yard.account("a"), partitions=3, waiting="parked")
    allocate()
    yard.gpus(2)
    allocate()
    (resume,) = yard.resumes()
    assert (resume.batch_id, resume.kind, resume.from_task, resume.done_at) == (
        batch,
        "resume",
        "wait_for_capacity",
        None,
    )
    assert [one.claim_by for one in yard.leases()] == [None, None]
    yard.clock.advance(hours=1)
    assert leases.lapse() == 0

    with unit_of_work() as work:
        work.session.merge(resume).done_at = work.now
        leases.start_claim_clock(work, batch)
    yard.gpus(3)
    allocate()
    assert len(yard.resumes()) == 1
    assert {one.claim_by for one in yard.leases()} == {yard.clock.now() + timedelta(seconds=60)}

    yard.clock.advance(seconds=60)
    assert leases.lapse() == 3
    allocate()
    assert len(yard.resumes()) == 2

    # Accepted in the very moment of a grant, which therefore got no clock: it lapses all the same.
    with unit_of_work() as work:
        work.session.merge(yard.resumes()[1]).done_at = work.now
    yard.clock.advance(seconds=59)
    assert leases.lapse() == 0
    yard.clock.advance(seconds=1)
    assert leases.lapse() == 3


def test_a_grant_of_an_ending_batch_goes_to_the_next(yard: Yard) -> None:
    """Cancel frees an unclaimed grant at once, without waiting for it to lapse."""
    first = yard.batch(yard.account("a"))
    yard.clock.advance(minutes=1)
    second = yard.batch(yard.account("b"))
    allocate()
    yard.cancel(first)
    assert allocate() == 1
    old, new = yard.leases()
    assert (old.outcome, new.batch_id) == ("unwanted", second)


@pytest.mark.thorough
def test_twenty_allocators_at_once(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many run at the same moment, one looks at a time, and each sees what the one before it granted."""
    inside = threading.Lock()
    together: list[int] = []
    seen: list[int] = []

    def load(work: Work) -> queue.Queue:
        if not inside.acquire(blocking=False):
            together.append(1)
            inside.acquire()
        try:
            found = real(work)
            seen.append(found.pools[0].live)
            return found
        finally:
            inside.release()

    real = queue.load
    monkeypatch.setattr(queue, "load", load)
    yard.gpus(3)
    batches = [yard.batch(yard.account(name), partitions=2) for name in "abcd"]
    granted = at_once(20, lambda _: allocate())
    assert sum(granted) == 3
    assert (together, seen) == ([], [0] + [3] * 19)
    assert len({one.batch_id for one in yard.leases(live=True)}) == 3
    assert sorted(str(yard.row(one).reason_code) for one in batches) == [
        "gridline_capacity",
        *["starting"] * 3,
    ]


@pytest.mark.thorough
def test_five_accounts_take_turns_on_one_gpu(yard: Yard) -> None:
    """Ten batches of five accounts: each account's first goes before any account's second."""
    accounts = {name: yard.account(name) for name in "abcde"}
    owner = {yard.batch(account): name for name, account in accounts.items() for _ in range(2)}
    served = []
    for _ in range(10):
        assert allocate() == 1
        (lease,) = yard.leases(live=True)
        served.append(owner[lease.batch_id])
        assert yard.end(lease.batch_id, yard.begin(lease.batch_id), JobExit.DONE) == "done"
    assert set(served[:5]) == set(served[5:]) == set("abcde")
