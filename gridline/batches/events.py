"""What happened to a batch, appended in the transaction in which it happened."""

from typing import Any

from sqlalchemy import select

from gridline.batches.tables import Batch, BatchEvent
from gridline.db.work import Work

KEEPER = "keeper"


def record(work: Work, batch: Batch, kind: str, *, actor: str = KEEPER, **details: Any) -> None:
    """Append one event; details hold ids, codes and counts, never a prompt or a result."""
    work.session.add(
        BatchEvent(
            batch_id=batch.id,
            account_id=batch.account_id,
            at=work.now,
            kind=kind,
            actor=actor,
            details=details,
        )
    )


def timeline(work: Work, *, account_id: str, batch_id: str) -> list[BatchEvent]:
    """A batch's events, oldest first."""
    found = work.session.scalars(
        select(BatchEvent)
        .where(BatchEvent.batch_id == batch_id, BatchEvent.account_id == account_id)
        .order_by(BatchEvent.sequence)
    )
    return list(found)
