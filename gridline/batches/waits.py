"""Stores why a batch waits, in the transaction of whoever decided it. Pages only read it."""

from gridline.batches import events
from gridline.batches.reasons import ReasonCode
from gridline.batches.tables import Batch
from gridline.db.work import Work


def set_reason(work: Work, batch: Batch, code: ReasonCode | None) -> bool:
    """Store the reason, or clear it with None. True if it changed: ``since`` then starts anew."""
    if batch.reason_code == code:
        return False
    batch.reason_code = code
    batch.reason_since = work.now if code else None
    if code is not None:
        events.record(work, batch, "waiting", reason_code=str(code))
    return True
