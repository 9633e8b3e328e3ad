"""From the object that collating left to the request log, for batches that have ended."""

from sqlalchemy import exists, select

from gridline import storage
from gridline.batches.states import Status
from gridline.batches.tables import Batch
from gridline.db.work import Work, unit_of_work
from gridline.lines import request_rows
from gridline.storage import layout
from gridline.usage import request_log
from gridline.usage.tables import LoggedBatch

DELIVERED = (Status.COMPLETED, Status.EXPIRED, Status.CANCELLED)
"""Ends that may have left lines; a failed batch ran nothing."""


def due(work: Work, *, most: int) -> list[str]:
    """Batches that ended and are not in the log yet, the oldest end first. Their objects are still there."""
    rows = (
        select(Batch.id)
        .where(
            Batch.ended_at.is_not(None),
            Batch.objects_deleted_at.is_(None),
            Batch.status.in_(DELIVERED),
            Batch.validated_at.is_not(None),
            ~exists().where(LoggedBatch.batch_id == Batch.id),
        )
        .order_by(Batch.ended_at)
        .limit(most)
    )
    return list(work.session.scalars(rows))


def log_batch(batch_id: str) -> bool:
    """Copy a batch's lines into the log, once; whether this call did. A batch that left none is marked alike."""
    data = storage.store().read_or_none(layout.requests_key(batch_id))
    rows = request_rows.read(data) if data is not None else iter(())
    with unit_of_work() as work:
        batch = work.session.get_one(Batch, batch_id)
        if batch.ended_at is None or batch.status not in DELIVERED:
            return False
        logged = LoggedBatch(batch_id=batch.id, account_id=batch.account_id, at=batch.ended_at)
        return request_log.record(work, logged, batch.card, rows)
