"""Finds batches whose run has ended or is gone, and ends or restarts them. Parked batches have no run on purpose.

Airflow's teardown settles nearly always; this is for the rest: a run deleted, a teardown that failed for good, a
metadata database put back from a backup.
"""

import logging

from sqlalchemy import func, select

from gridline.batches import finishing, moves
from gridline.batches.states import TERMINAL, Waiting
from gridline.batches.tables import Batch, RunRequest
from gridline.db.work import Work, unit_of_work
from gridline.keeper.airflow import Airflow
from gridline.keeper.duties import each
from gridline.telemetry import metrics

log = logging.getLogger(__name__)

STARTS_MAX = 3
"""A batch whose run vanished before validation is started again this often in all, then it is ended."""


def reconcile(airflow: Airflow) -> int:
    """Look at every batch that should have a live run; how many were ended or started again."""
    with unit_of_work() as work:
        expected = _expected(work)
    if not expected:
        return 0
    if not airflow.ready():
        log.warning(
            "The DAG is paused in Airflow, or not known there yet: runs are accepted but none starts."
        )
    # Asked after the rows were read: a run that a batch got since then only makes this set larger.
    live = airflow.live_runs()
    lost = [batch_id for batch_id in expected if batch_id not in live]
    return each("reconcile", lost, lambda batch_id: _reconcile(airflow, batch_id))


def _reconcile(airflow: Airflow, batch_id: str) -> bool:
    run = airflow.get_run(batch_id)
    if run is not None and not run.ended:
        return False
    with unit_of_work() as work:
        # The batch may have parked, or ended, while Airflow was asked.
        if not _expected(work, batch_id):
            return False
        batch = moves.locked(work, batch_id)
        if batch.waiting == Waiting.DEFERRED:
            # The run that waited inside Airflow is over, so nobody waits there for this batch.
            batch.waiting = None
        if run is None and _start_again(work, batch):
            log.warning("The run of batch %s is gone before it validated: it is started again.", batch_id)
            return True
    status = finishing.finish(batch_id, run_over=True)
    ended = status in TERMINAL
    log.warning("The run of batch %s is over and it had not ended; it is now %s.", batch_id, status)
    metrics.BATCHES_FINISHED.inc(ended)
    return ended


def _start_again(work: Work, batch: Batch) -> bool:
    starts = select(func.count()).where(RunRequest.batch_id == batch.id, RunRequest.kind == "start")
    if batch.validated_at is not None or (work.session.scalar(starts) or 0) >= STARTS_MAX:
        return False
    moves.request_run(work, batch, "start")
    return True


def _expected(work: Work, batch_id: str | None = None) -> list[str]:
    """Open batches that are not parked and whose run was asked for and accepted."""
    asked = select(RunRequest).where(RunRequest.batch_id == Batch.id, RunRequest.done_at.is_(None)).exists()
    statement = select(Batch.id).where(
        Batch.ended_at.is_(None), Batch.waiting.is_distinct_from(Waiting.PARKED), ~asked
    )
    if batch_id is not None:
        statement = statement.where(Batch.id == batch_id)
    return list(work.session.scalars(statement.order_by(Batch.sequence)))
