"""Leases: claim, renew, give back, lapse. Grants come from the allocator alone.

A lease is a grant until it is claimed. Each has its own id, under which its attempt writes, and whoever acts on a
lease that was released changes nothing: that is the fence against jobs that come back from the dead.
Locks are taken in one order: batch, partition, lease.
"""

import json
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import ColumnElement, Select, func, or_, select, update

from gridline import limits, storage
from gridline.batches import moves, waits
from gridline.batches.reasons import ReasonCode
from gridline.batches.states import Status
from gridline.batches.tables import Attempt, Batch, Partition, RunRequest
from gridline.capacity import reading
from gridline.capacity.tables import Lease
from gridline.db.work import Work, unit_of_work
from gridline.storage import layout

OPEN = (Status.VALIDATING, Status.IN_PROGRESS)
"""Statuses in which a batch may get and use a lease."""


class Outcome(StrEnum):
    """How a lease ended."""

    DONE = "done"
    STOPPED = "stopped"
    CRASHED = "crashed"
    ENGINE_UNHEALTHY = "engine_unhealthy"
    EXPIRED = "expired"
    UNCLAIMED = "unclaimed"
    UNWANTED = "unwanted"


COUNTED = (Outcome.CRASHED, Outcome.EXPIRED)
"""Outcomes that are one of a partition's three attempts, if its engine was healthy."""


def is_open(batch: Batch) -> bool:
    """Whether the batch may still get and use leases (not cancelling, finalizing, ended, or out of GPU time)."""
    return batch.ended_at is None and batch.status in OPEN and batch.gpu_time_over_at is None


def in_time(batch: Batch, now: datetime) -> bool:
    """Whether an attempt may begin now: so a batch that starts has all the time that its window leaves it."""
    return now < batch.expires_at and (batch.any_line_ran or now < batch.start_by)


def partition(work: Work, batch: Batch, number: int) -> Partition:
    """The partition's row, locked; its batch is locked already."""
    return work.session.scalars(
        select(Partition)
        .where(Partition.batch_id == batch.id, Partition.number == number)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one()


def live(work: Work, batch_id: str, number: int) -> Lease | None:
    """The partition's grant or lease, locked; None when it has none."""
    return work.session.scalars(
        _locked(select(Lease)).where(
            Lease.batch_id == batch_id, Lease.partition == number, Lease.released_at.is_(None)
        )
    ).one_or_none()


def is_live(work: Work, lease_id: str) -> bool:
    """Whether the lease was not released yet."""
    live = select(Lease.id).where(Lease.id == lease_id, Lease.released_at.is_(None))
    return work.session.scalar(live) is not None


def claim(work: Work, lease: Lease) -> None:
    """Turn a locked grant into a lease that lives as long as its progress is seen to move."""
    lease.claimed_at = work.now
    lease.expires_at = work.now + timedelta(seconds=limits.LEASE_TTL_SECONDS)
    work.notify("capacity")


def renew(work: Work, lease_id: str) -> bool:
    """Give a claimed lease its full time again, because its progress moved; False when it was released."""
    renewed = work.session.execute(
        update(Lease)
        .where(Lease.id == lease_id, Lease.released_at.is_(None), Lease.claimed_at.is_not(None))
        .values(expires_at=work.now + timedelta(seconds=limits.LEASE_TTL_SECONDS))
        .returning(Lease.id)
        .execution_options(synchronize_session=False)
    ).first()
    return renewed is not None


def start_claim_clock(work: Work, batch_id: str) -> None:
    """A parked batch's run was resumed: from now its grants lapse unless they are claimed in time."""
    work.session.execute(
        update(Lease)
        .where(
            Lease.batch_id == batch_id,
            Lease.released_at.is_(None),
            Lease.claimed_at.is_(None),
            Lease.claim_by.is_(None),
        )
        .values(claim_by=work.now + timedelta(seconds=limits.GRANT_CLAIM_SECONDS))
        .execution_options(synchronize_session=False)
    )


def give_back(work: Work, lease: Lease, outcome: Outcome, *, batch: Batch, part: Partition) -> None:
    """End a live lease, its attempt and what they leave of the partition; all three rows are locked.

    A partition that is not done waits again, until it was tried three times on a healthy engine, or the engine that
    had answered lines of the batch is gone for good.
    """
    attempt = work.session.scalars(select(Attempt).where(Attempt.lease_id == lease.id)).one_or_none()
    healthy = attempt is not None and attempt.engine_healthy
    if attempt is not None:
        attempt.ended_at = work.now
        attempt.outcome = outcome
        part.attempts += healthy and outcome in COUNTED
        part.state = _left(work, batch, part, outcome)
    _release(work, lease, outcome)
    work.session.flush()
    if attempt is not None and part.state == "waiting" and is_open(batch):
        lost = healthy and batch.any_line_ran
        _explain(work, batch, ReasonCode.RETRYING if lost else ReasonCode.GRIDLINE_CAPACITY)


def lapse(*, alive: Collection[str] = (), dead: Collection[str] = ()) -> int:
    """End grants that nobody claimed and leases whose progress stopped; how many.

    Call it after progress was read and leases were renewed: a keeper that was away must not let live jobs lapse.
    A job that lost its lease is told to stop; whatever it still writes under the lost lease changes nothing.
    ``alive`` and ``dead`` are leases that the caller saw move in time, or not, by a clock that nobody sets: for them
    it decides, not the database's wall time.
    """
    with unit_of_work() as work:
        due = work.session.execute(
            select(Lease.batch_id, Lease.partition, Lease.id)
            .where(Lease.released_at.is_(None), _ended(work, alive, dead))
            .order_by(Lease.fence)
        ).all()
    return sum([_lapse(*one, alive=alive, dead=dead) for one in due])


def drop_unwanted(work: Work) -> int:
    """Release grants of batches that are ending, ended or held; how many. Claimed leases end with their attempt."""
    unwanted = work.session.scalars(
        _locked(select(Lease))
        .join(Batch, Batch.id == Lease.batch_id)
        .where(
            Lease.released_at.is_(None),
            Lease.claimed_at.is_(None),
            or_(
                Batch.ended_at.is_not(None),
                Batch.status.not_in(OPEN),
                Batch.operator_hold_at.is_not(None),
                Batch.gpu_time_over_at.is_not(None),
            ),
        )
        .order_by(Lease.fence)
    ).all()
    for lease in unwanted:
        _release(work, lease, Outcome.UNWANTED)
    return len(unwanted)


def drop_grants(work: Work, batch: Batch) -> int:
    """Release the grants of one batch, whose row is locked, that nobody has claimed; how many."""
    waiting = work.session.scalars(
        _locked(select(Lease))
        .where(Lease.batch_id == batch.id, Lease.released_at.is_(None), Lease.claimed_at.is_(None))
        .order_by(Lease.fence)
    ).all()
    for lease in waiting:
        _release(work, lease, Outcome.UNWANTED)
    return len(waiting)


def _lapse(
    batch_id: str, number: int, lease_id: str, *, alive: Collection[str], dead: Collection[str]
) -> bool:
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        part = partition(work, batch, number)
        lease = work.session.scalars(
            _locked(select(Lease)).where(
                Lease.id == lease_id, Lease.released_at.is_(None), _ended(work, alive, dead)
            )
        ).one_or_none()
        if lease is None:
            return False
        claimed = lease.claimed_at is not None
        give_back(work, lease, Outcome.EXPIRED if claimed else Outcome.UNCLAIMED, batch=batch, part=part)
        prefix = reading.attempt_prefix(work, lease_id)
    if prefix is not None:
        stop = json.dumps({"format": 1, "reason": "lease_lost"})
        storage.store().replace(layout.stop_key(prefix), stop.encode())
    return True


def _left(work: Work, batch: Batch, part: Partition, outcome: Outcome) -> str:
    if outcome is Outcome.DONE:
        return "done"
    gone = outcome is Outcome.ENGINE_UNHEALTHY and batch.any_line_ran and _engine_is_gone(work, part)
    return "given_up" if gone or part.attempts >= limits.ATTEMPTS_PER_PARTITION_MAX else "waiting"


def _engine_is_gone(work: Work, part: Partition) -> bool:
    """Whether no engine became healthy for so long, and so many attempts, that what ran should be delivered.

    A batch of which nothing ran has its start bound instead: it waits, since nobody has anything of it yet.
    """
    work.session.flush()
    tries = (
        select(Attempt).where(Attempt.batch_id == part.batch_id, Attempt.partition == part.number).subquery()
    )
    healthy = select(func.coalesce(func.max(tries.c.number), 0)).where(tries.c.engine_healthy)
    count, since = work.session.execute(
        select(func.count(), func.min(tries.c.started_at)).where(
            tries.c.outcome == Outcome.ENGINE_UNHEALTHY, tries.c.number > healthy.scalar_subquery()
        )
    ).one()
    long_ago = work.now - timedelta(seconds=limits.ENGINE_GONE_SECONDS)
    return bool(count >= limits.ATTEMPTS_PER_PARTITION_MAX and since <= long_ago)


def _release(work: Work, lease: Lease, outcome: Outcome) -> None:
    lease.released_at = work.now
    lease.outcome = outcome
    work.notify("capacity")


def _explain(work: Work, batch: Batch, code: ReasonCode) -> None:
    """Say why nothing moves, if nothing else of the batch does."""
    if reading.live_of_batch(work, batch.id) == 0 and waits.set_reason(work, batch, code):
        work.notify("batches")


def _ended(work: Work, alive: Collection[str], dead: Collection[str]) -> ColumnElement[bool]:
    """Overdue, unless it was seen alive; or seen dead."""
    return or_(_overdue(work) & Lease.id.not_in(alive), Lease.id.in_(dead) & Lease.claimed_at.is_not(None))


def _overdue(work: Work) -> ColumnElement[bool]:
    """A grant past its time, or without a clock and without anybody asked to claim it; a lease past its time."""
    asked = select(RunRequest).where(RunRequest.batch_id == Lease.batch_id, RunRequest.done_at.is_(None))
    forgotten = work.now - timedelta(seconds=limits.GRANT_CLAIM_SECONDS)
    return or_(
        Lease.claimed_at.is_(None) & (Lease.claim_by <= work.now),
        Lease.claimed_at.is_(None)
        & Lease.claim_by.is_(None)
        & (Lease.granted_at <= forgotten)
        & ~asked.exists(),
        Lease.claimed_at.is_not(None) & (Lease.expires_at <= work.now),
    )


def _locked(statement: Select[Lease]) -> Select[Lease]:
    return statement.with_for_update(of=Lease).execution_options(populate_existing=True)
