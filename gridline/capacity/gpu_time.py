"""GPU time: what a batch's leases lasted, the budget that the operator set for it, and who has used it up.

The budget is the smaller of the account's and the model card's as it was copied when credit was held; neither, no
budget. A lease counts from its claim to its release. What follows of a used budget is for the keeper to do.
"""

from datetime import datetime
from decimal import Decimal

from sqlalchemy import text, update

from gridline.batches import events, moves
from gridline.capacity import leases
from gridline.customers import audit
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.errors import InvalidRequest

_SECONDS = """
(SELECT coalesce(sum(greatest(extract(epoch FROM coalesce(l.released_at, :now) - l.claimed_at), 0)), 0)
FROM leases l WHERE l.batch_id = b.id AND l.claimed_at IS NOT NULL)
"""
# A clock that was set back makes a lease short, never negative.
_USED = text(f"SELECT {_SECONDS} FROM batches b WHERE b.id = :batch_id")  # noqa: S608  # no word of it comes from outside
_BUDGET = "least(a.gpu_seconds_per_batch_max, (b.card->>'gpu_seconds_per_batch_max')::bigint)"
_OVER = text(f"""
SELECT b.id FROM batches b JOIN accounts a ON a.id = b.account_id
WHERE b.ended_at IS NULL AND b.status = 'in_progress' AND b.first_lease_at IS NOT NULL
    AND b.gpu_time_over_at IS NULL AND {_BUDGET} <= {_SECONDS}
ORDER BY b.sequence
""")  # noqa: S608  # as above


def used_seconds(work: Work, batch_id: str, now: datetime) -> Decimal:
    """GPU seconds that the batch's leases have lasted, live ones until now."""
    return Decimal(work.session.execute(_USED, {"batch_id": batch_id, "now": now}).scalar_one())


def over(work: Work) -> list[str]:
    """Batches in progress that have used all the GPU time they may use, and of which nobody has noted that."""
    return list(work.session.scalars(_OVER, {"now": work.now}))


def note_over(work: Work, batch_id: str) -> bool:
    """Note that the batch has used its GPU time: it gets no more leases and ends as at its deadline. Once."""
    batch = moves.locked(work, batch_id)
    if not leases.is_open(batch):
        return False
    batch.gpu_time_over_at = work.now
    used = used_seconds(work, batch.id, work.now)
    events.record(work, batch, "gpu_time_over", gpu_seconds=int(used))
    leases.drop_grants(work, batch)
    work.notify("batches")
    return True


def set_budget(work: Work, account_id: str, seconds: int | None, *, actor: str, why: str) -> None:
    """Set or (None) lift the GPU seconds that each batch of an account may use; it concerns running batches too.

    Raises:
        InvalidRequest: less than a second.
    """
    if seconds is not None and seconds < 1:
        raise InvalidRequest(
            f"A batch's GPU time is at least 1 second, got {seconds}. Say 'none' for no limit.",
            param="gpu_seconds_per_batch",
        )
    work.session.execute(
        update(Account).where(Account.id == account_id).values(gpu_seconds_per_batch_max=seconds)
    )
    details = {"gpu_seconds_per_batch": seconds, "why": why}
    audit.record(work, account_id=account_id, actor=actor, action="account.gpu_time", details=details)
    work.notify("batches")
