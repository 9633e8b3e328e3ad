"""Reads capacity: live attempts for the keeper, queue and pool figures for metrics and pages. Writes nothing."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, func, select

from gridline.batches.tables import Attempt, Batch
from gridline.capacity import queue
from gridline.capacity.tables import Lease, Pool
from gridline.db.work import Work
from gridline.storage import layout


@dataclass(frozen=True)
class LiveAttempt:
    """An attempt that runs under a live lease, and where it writes."""

    batch_id: str
    partition: int
    number: int
    lease_id: str
    expires_at: datetime | None

    @property
    def prefix(self) -> str:
        """The folder of its segments and its progress."""
        return layout.attempt_prefix(self.batch_id, self.partition, self.number, self.lease_id)


@dataclass(frozen=True)
class PoolFigures:
    """A pool now: GPUs, grants that wait to be claimed, leases at work."""

    name: str
    gpus: int
    granted: int
    leased: int


@dataclass(frozen=True)
class QueueFigures:
    """The queue now: batches and partitions that wait for a lease, and how the waiting batches wait."""

    batches: int
    partitions: int
    deferred: int
    parked: int
    by_reason: dict[str, int]
    """Waiting batches by stored reason code, whatever they wait for."""


def live_of_batch(work: Work, batch_id: str) -> int:
    """How many grants and leases the batch has now."""
    count = select(func.count()).where(Lease.batch_id == batch_id, Lease.released_at.is_(None))
    return work.session.scalar(count) or 0


def running(work: Work) -> list[LiveAttempt]:
    """Every attempt under a claimed live lease: whose progress the keeper follows."""
    rows = work.session.execute(
        select(Lease.batch_id, Lease.partition, Attempt.number, Lease.id, Lease.expires_at)
        .join(Attempt, Attempt.lease_id == Lease.id)
        .where(Lease.released_at.is_(None), Lease.claimed_at.is_not(None))
        .order_by(Lease.fence)
    )
    return [LiveAttempt(*row) for row in rows]


def attempt_prefix(work: Work, lease_id: str) -> str | None:
    """Where the lease's attempt writes; None for a grant that was never claimed."""
    attempt = work.session.scalars(select(Attempt).where(Attempt.lease_id == lease_id)).one_or_none()
    if attempt is None:
        return None
    return layout.attempt_prefix(attempt.batch_id, attempt.partition, attempt.number, lease_id)


def pools(work: Work) -> list[PoolFigures]:
    """Every pool, by name."""
    claimed = Lease.claimed_at.is_not(None)
    rows = work.session.execute(
        select(
            Pool.name, Pool.gpus, func.count(Lease.id).filter(~claimed), func.count(Lease.id).filter(claimed)
        )
        .join(Lease, (Lease.pool == Pool.name) & Lease.released_at.is_(None), isouter=True)
        .group_by(Pool.name)
        .order_by(Pool.name)
    )
    return [PoolFigures(*row) for row in rows]


def waiting(work: Work) -> QueueFigures:
    """The queue's figures."""
    candidates = queue.load(work).candidates
    is_open = Batch.ended_at.is_(None)
    ways = _counts(work, select(Batch.waiting, func.count()).where(is_open).group_by(Batch.waiting))
    return QueueFigures(
        batches=len(candidates),
        partitions=sum(len(one.partitions) for one in candidates),
        deferred=ways.get("deferred", 0),
        parked=ways.get("parked", 0),
        by_reason=_counts(
            work, select(Batch.reason_code, func.count()).where(is_open).group_by(Batch.reason_code)
        ),
    )


def _counts(work: Work, statement: Select[str | None, int]) -> dict[str, int]:
    return {key: count for key, count in work.session.execute(statement) if key is not None}
