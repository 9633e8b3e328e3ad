"""The queue as rows tell it now: what admission decides over. Reads only, without locks.

A batch is in the queue when it is validating or in progress, has its hold, and has a partition that waits without
a live lease, whether its run is deferred, parked or between two tasks. A partition whose engine has just failed to
become healthy pauses first, so that a broken engine does not spin. What is past its deadline, its start bound or its
GPU time is about to end and gets nothing any more.
"""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import text

from gridline.capacity import budget
from gridline.capacity.admission import AccountState, Candidate, PoolState
from gridline.db.work import Work
from gridline.limits import ENGINE_PAUSE_SECONDS

RECENT_LEASES = 2_000
"""How far back "served longest ago" looks: accounts without a lease among these count as never served."""


@dataclass(frozen=True)
class Queue:
    """Pools, accounts and batches for admission, and what is stored on each batch so far."""

    pools: tuple[PoolState, ...]
    accounts: tuple[AccountState, ...]
    candidates: tuple[Candidate, ...]
    stored: dict[str, tuple[str, str | None]]
    """Batch id to (status, reason code)."""
    budget_nanos: int | None
    """What may still start today; None where the platform has no daily limit."""


def load(work: Work) -> Queue:
    """The queue as this statement sees it."""
    pause_began = work.now - timedelta(seconds=ENGINE_PAUSE_SECONDS)
    rows = work.session.execute(_CANDIDATES, {"pause_began": pause_began, "now": work.now}).all()
    return Queue(
        pools=tuple(
            PoolState(one.name, one.gpus, tuple(one.models), one.datacenter, one.live)
            for one in work.session.execute(_POOLS)
        ),
        accounts=tuple(
            AccountState(one.id, one.leases_max, one.datacenter_only, one.live, one.last_fence)
            for one in work.session.execute(
                _ACCOUNTS, {"ids": sorted({row.account_id for row in rows}), "recent": RECENT_LEASES}
            )
        ),
        candidates=tuple(
            Candidate(
                batch_id=row.id,
                account_id=row.account_id,
                model=row.model,
                window=row.completion_window,
                created_at=row.created_at,
                sequence=row.sequence,
                started=row.first_lease_at is not None,
                live=row.live,
                partitions=tuple(row.partitions),
                held=row.held,
                hold_nanos=row.amount_nanos,
            )
            for row in rows
        ),
        stored={row.id: (row.status, row.reason_code) for row in rows},
        budget_nanos=budget.left_nanos(work),
    )


_POOLS = text("""
SELECT p.name, p.gpus, p.models, p.datacenter, count(l.id) AS live
FROM pools p LEFT JOIN leases l ON l.pool = p.name AND l.released_at IS NULL
GROUP BY p.name ORDER BY p.name
""")

_ACCOUNTS = text("""
SELECT a.id, a.leases_max, a.datacenter_only, coalesce(n.live, 0) AS live, coalesce(r.last_fence, 0) AS last_fence
FROM accounts a LEFT JOIN (
    SELECT account_id, count(*) AS live FROM leases WHERE released_at IS NULL GROUP BY account_id
) n ON n.account_id = a.id LEFT JOIN (
    SELECT account_id, max(fence) AS last_fence
    FROM (SELECT account_id, fence FROM leases ORDER BY fence DESC LIMIT :recent) recent GROUP BY account_id
) r ON r.account_id = a.id
WHERE a.id = ANY(:ids)
""")

_CANDIDATES = text("""
SELECT b.id, b.account_id, b.model, b.completion_window, b.created_at, b.sequence, b.first_lease_at,
    b.status, b.reason_code, b.operator_hold_at IS NOT NULL AS held, h.amount_nanos, w.partitions,
    (SELECT count(*) FROM leases l WHERE l.batch_id = b.id AND l.released_at IS NULL) AS live
FROM batches b JOIN holds h ON h.batch_id = b.id CROSS JOIN LATERAL (
    SELECT array_agg(p.number ORDER BY p.number) AS partitions FROM partitions p
    WHERE p.batch_id = b.id AND p.state = 'waiting' AND NOT EXISTS (
        SELECT FROM leases l
        WHERE l.batch_id = p.batch_id AND l.partition = p.number AND (
            l.released_at IS NULL
            OR l.outcome = 'engine_unhealthy' AND l.released_at > :pause_began AND l.released_at <= :now))
) w
WHERE b.ended_at IS NULL AND b.status IN ('validating', 'in_progress') AND w.partitions IS NOT NULL
    AND b.gpu_time_over_at IS NULL AND b.expires_at > :now AND (b.any_line_ran OR b.start_by > :now)
ORDER BY b.created_at, b.sequence
""")
