"""Sets the platform's gauges from the database. Changes nothing."""

from sqlalchemy import func, select
from sqlalchemy.orm import aliased

from gridline.batches.states import TERMINAL, Status
from gridline.batches.tables import Attempt, Batch, RunRequest
from gridline.capacity import gpu_revenue, reading
from gridline.capacity.leases import Outcome
from gridline.clock import Days
from gridline.db.work import Work, unit_of_work
from gridline.money import NANOS_PER_CREDIT
from gridline.proof import platform
from gridline.telemetry import metrics


def measure() -> None:
    """Read queue, pools, outbox and the last proof once."""
    with unit_of_work() as work:
        due = select(func.count()).where(RunRequest.done_at.is_(None))
        metrics.RUN_REQUESTS_DUE.set(work.session.scalar(due) or 0)
        is_open = Batch.ended_at.is_(None)
        counts = select(Batch.status, func.count()).where(is_open).group_by(Batch.status)
        by_status = dict(work.session.execute(counts).all())
        pools = reading.pools(work)
        waiting = reading.waiting(work).by_reason
        oldest = _oldest_waits(work)
        metrics.WITHOUT_ENGINE.set(_without_engine(work))
        proof = platform.last(work)
    for status in set(Status) - TERMINAL:
        metrics.BATCHES_OPEN.labels(status).set(by_status.get(status, 0))
    metrics.BATCHES_WAITING.clear()
    for reason, count in waiting.items():
        metrics.BATCHES_WAITING.labels(reason).set(count)
    metrics.OLDEST_WAIT.clear()
    for reason, seconds in oldest.items():
        metrics.OLDEST_WAIT.labels(reason).set(seconds)
    for pool in pools:
        metrics.POOL_GPUS.labels(pool.name).set(pool.gpus)
        metrics.LEASES_LIVE.labels(pool.name).set(pool.granted + pool.leased)
    if proof is not None:
        metrics.PROOF_BROKEN.set(proof.broken)
        metrics.PROOF_TIME.set(proof.at.timestamp())


def _oldest_waits(work: Work) -> dict[str, float]:
    """By reason code how many seconds the batch has it that has it the longest."""
    rows = work.session.execute(
        select(Batch.reason_code, func.min(Batch.reason_since))
        .where(Batch.ended_at.is_(None))
        .group_by(Batch.reason_code)
    )
    return {reason: (work.now - since).total_seconds() for reason, since in rows if reason and since}


def _without_engine(work: Work) -> int:
    """Open batches with an attempt that found no healthy engine and that no healthy one of its partition followed."""
    later = aliased(Attempt)
    followed = select(later).where(
        later.batch_id == Attempt.batch_id,
        later.partition == Attempt.partition,
        later.number > Attempt.number,
        later.engine_healthy,
    )
    found = (
        select(func.count(Attempt.batch_id.distinct()))
        .join(Batch, Batch.id == Attempt.batch_id)
        .where(Batch.ended_at.is_(None), Attempt.outcome == Outcome.ENGINE_UNHEALTHY, ~followed.exists())
    )
    return work.session.scalar(found) or 0


def measure_gpu_use() -> None:
    """Add up the day's GPU time and charges once: over all batches of the day, so not as often as the others."""
    with unit_of_work() as work:
        today = gpu_revenue.used(work, Days.of(work.now), ["model"])
    for gauge in (metrics.GPU_SECONDS_TODAY, metrics.CREDITS_TODAY):
        gauge.clear()
    for one in today:
        metrics.GPU_SECONDS_TODAY.labels(*one.of).set(float(one.gpu_seconds))
        metrics.CREDITS_TODAY.labels(*one.of).set(one.charged_nanos / NANOS_PER_CREDIT)
