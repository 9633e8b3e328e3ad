"""Sets the platform's gauges from the database. Changes nothing."""

from sqlalchemy import func, select

from gridline.batches.states import TERMINAL, Status
from gridline.batches.tables import Batch, RunRequest
from gridline.capacity import reading
from gridline.db.work import unit_of_work
from gridline.telemetry import metrics


def measure() -> None:
    """Read queue, pools and outbox once."""
    with unit_of_work() as work:
        due = select(func.count()).where(RunRequest.done_at.is_(None))
        metrics.RUN_REQUESTS_DUE.set(work.session.scalar(due) or 0)
        is_open = Batch.ended_at.is_(None)
        counts = select(Batch.status, func.count()).where(is_open).group_by(Batch.status)
        by_status = dict(work.session.execute(counts).all())
        pools = reading.pools(work)
        waiting = reading.waiting(work).by_reason
    for status in set(Status) - TERMINAL:
        metrics.BATCHES_OPEN.labels(status).set(by_status.get(status, 0))
    metrics.BATCHES_WAITING.clear()
    for reason, count in waiting.items():
        metrics.BATCHES_WAITING.labels(reason).set(count)
    for pool in pools:
        metrics.POOL_GPUS.labels(pool.name).set(pool.gpus)
        metrics.LEASES_LIVE.labels(pool.name).set(pool.granted + pool.leased)
