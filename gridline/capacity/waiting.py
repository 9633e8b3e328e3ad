"""The wait of a run: look for the batch's grant, and either go on, wait inside Airflow, or leave the run.

Few runs may wait inside Airflow; the other batches are parked: they wait as rows, and the keeper resumes
their runs when the allocator grants. It grants nothing itself, and knows nothing of sensors and triggers but
what their one shared stream reads.
"""

from typing import Literal

from sqlalchemy import exists, func, select

from gridline.batches import moves
from gridline.batches.states import Waiting
from gridline.batches.tables import Batch, Partition
from gridline.capacity import leases, reading
from gridline.db.work import Work, unit_of_work
from gridline.ledger import reading as books
from gridline.settings import settings

_LOCK = 0x7761_6974

SNAPSHOT_SQL = """
SELECT id AS batch_id, NULL::bigint AS partition, 'open' AS what
FROM batches WHERE ended_at IS NULL AND status IN ('validating', 'in_progress') AND gpu_time_over_at IS NULL
UNION ALL
SELECT batch_id, partition, 'granted' FROM leases WHERE released_at IS NULL AND claimed_at IS NULL
UNION ALL
SELECT p.batch_id, p.number, 'over' FROM partitions p JOIN batches b ON b.id = p.batch_id
WHERE b.ended_at IS NULL AND b.status = 'in_progress' AND p.state IN ('done', 'given_up')
"""
"""What the shared stream of waiting tasks shows at one moment, as (batch, partition, what). It takes no parameters.

``(batch, None, "open")``: the batch may still get leases; a task whose batch has no such row need not wait any
more, because the batch is cancelling, finalizing, out of GPU time or has ended. (Told this way round the snapshot stays as small
as the open batches, and an end that happened while nobody listened is never missed.)
``(batch, n, "granted")``: a grant that waits to be claimed. ``(batch, n, "over")``: the partition needs no attempt.
"""

Answer = Literal["granted", "deferred", "parked", "ended"]


def look_for_grant(batch_id: str) -> Answer:
    """Task body: whether the batch's run may go on, and where it waits if not.

    Returns:
        ``"granted"``: go on, a lease is there (or every partition had its own); ``"deferred"``: wait inside
        Airflow; ``"parked"``: end the run, it will be resumed; ``"ended"``: nothing is left to wait for.
    """
    with unit_of_work() as work:
        # Looks go one after another, so that the count of deferred runs is never passed.
        work.session.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        batch = moves.locked(work, batch_id)
        if not leases.is_open(batch):
            return "ended"
        if moves.stays_parked(work, batch):
            return "parked"
        if reading.live_of_batch(work, batch_id) or not _any_waits(work, batch_id):
            batch.waiting = None
            leases.start_claim_clock(work, batch_id)
            return "granted"
        place = _place(work, batch)
        if batch.waiting != place:
            work.notify("capacity")
        if place is Waiting.PARKED:
            moves.park(work, batch)
        else:
            batch.waiting = place
        return "deferred" if place is Waiting.DEFERRED else "parked"


def _any_waits(work: Work, batch_id: str) -> bool:
    waits = exists().where(Partition.batch_id == batch_id, Partition.state == "waiting")
    return bool(work.session.scalar(select(waits)))


def _place(work: Work, batch: Batch) -> Waiting:
    """A run that waits inside Airflow keeps its place; one to which no grant can come soon never takes one."""
    if books.hold_of(work, batch.id) is None or batch.operator_hold_at is not None:
        return Waiting.PARKED
    deferred = work.session.scalar(
        select(func.count()).where(
            Batch.ended_at.is_(None),
            Batch.status.in_(leases.OPEN),
            Batch.waiting == Waiting.DEFERRED,
            Batch.id != batch.id,
        )
    )
    return Waiting.DEFERRED if (deferred or 0) < settings().deferred_runs_max else Waiting.PARKED
