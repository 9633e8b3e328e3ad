"""The platform at one look: open batches and why they wait, GPUs and who has them, the last proof, today's budget."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select

from gridline import limits
from gridline.batches.tables import Batch
from gridline.capacity import budget, reading
from gridline.capacity.tables import Lease
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.proof import platform
from gridline.proof.tables import Proof

LEASES_MAX = 200
"""Live leases that one look names; the pools count them all."""


@dataclass(frozen=True)
class Waiting:
    """Open batches with the same stored reason (None: they move), and since when the first of them has it."""

    code: str | None
    batches: int
    oldest: datetime | None


@dataclass(frozen=True)
class LiveLease:
    """A claimed lease: who runs where, and when its job was last heard of."""

    pool: str
    batch_id: str
    partition: int
    account: str
    claimed_at: datetime
    heartbeat_seconds: int
    """Seconds since the last sign of life; the lease lapses at ``limits.LEASE_TTL_SECONDS``."""


@dataclass(frozen=True)
class Overview:
    """All of the first page."""

    now: datetime
    by_status: dict[str, int]
    by_reason: list[Waiting]
    pools: list[reading.PoolFigures]
    leases: list[LiveLease]
    proof: Proof | None
    day: budget.Day


def look(work: Work) -> Overview:
    """The platform as it is committed now."""
    return Overview(
        now=work.now,
        by_status=_by_status(work),
        by_reason=_by_reason(work),
        pools=reading.pools(work),
        leases=live_leases(work),
        proof=platform.last(work),
        day=budget.today(work),
    )


def live_leases(work: Work, batch_id: str | None = None) -> list[LiveLease]:
    """Claimed leases that live, of one batch or of all, the longest unheard first."""
    statement = (
        select(Lease.pool, Lease.batch_id, Lease.partition, Account.name, Lease.claimed_at, Lease.expires_at)
        .join(Account, Account.id == Lease.account_id)
        .where(Lease.released_at.is_(None), Lease.claimed_at.is_not(None))
    )
    if batch_id is not None:
        statement = statement.where(Lease.batch_id == batch_id)
    rows = work.session.execute(statement.order_by(Lease.expires_at, Lease.fence).limit(LEASES_MAX))
    return [
        LiveLease(
            one.pool,
            one.batch_id,
            one.partition,
            one.name,
            one.claimed_at,
            _unheard(work.now, one.expires_at),
        )
        for one in rows
    ]


def _unheard(now: datetime, expires_at: datetime) -> int:
    """Each sign of life gives the lease its whole time anew."""
    return max(0, int((now - expires_at + timedelta(seconds=limits.LEASE_TTL_SECONDS)).total_seconds()))


def _by_status(work: Work) -> dict[str, int]:
    rows = work.session.execute(
        select(Batch.status, func.count())
        .where(Batch.ended_at.is_(None))
        .group_by(Batch.status)
        .order_by(Batch.status)
    )
    return {row[0]: row[1] for row in rows}


def _by_reason(work: Work) -> list[Waiting]:
    """The oldest wait first; what moves comes last."""
    oldest = func.min(Batch.reason_since)
    rows = work.session.execute(
        select(Batch.reason_code, func.count(), oldest)
        .where(Batch.ended_at.is_(None))
        .group_by(Batch.reason_code)
        .order_by(Batch.reason_code.is_(None), oldest.nulls_last(), Batch.reason_code)
    )
    return [Waiting(*row) for row in rows]
