"""Ends what must end: cancelled batches, those past their deadline or their GPU time, those that never started in time.

Jobs are asked to stop first, and flush; the batch ends when none is left, or when they had time enough. Whatever a
job still writes after that changes nothing, since finishing seals what counts.
"""

import json
import time
from collections.abc import Callable

from sqlalchemy import and_, or_, select

from gridline import storage
from gridline.batches import finishing
from gridline.batches.states import TERMINAL, Status
from gridline.batches.tables import Batch
from gridline.capacity import gpu_time, reading
from gridline.capacity.reading import LiveAttempt
from gridline.db.work import Work, unit_of_work
from gridline.keeper.duties import each
from gridline.storage import layout
from gridline.telemetry import metrics

PATIENCE_SECONDS = 60.0
"""Jobs give lines in flight 10 s and then flush; a job that takes longer than this is not waited for."""


class Deadlines:
    """Remembers when it asked each job to stop (on this process's monotonic clock)."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._asked: dict[str, float] = {}
        self._monotonic = monotonic

    def enforce(self) -> int:
        """Stop the jobs of every batch that is due and end those that have none left; how many ended."""
        _note_gpu_time()
        with unit_of_work() as work:
            due = _due(work)
            running = reading.running(work) if due else []
        mine = {one.lease_id for one in running if one.batch_id in due}
        self._asked = {lease_id: since for lease_id, since in self._asked.items() if lease_id in mine}
        jobs = {batch_id: [one for one in running if one.batch_id == batch_id] for batch_id in due}
        ended = each("deadlines", due, lambda batch_id: self._end(batch_id, due[batch_id], jobs[batch_id]))
        metrics.BATCHES_FINISHED.inc(ended)
        return ended

    def _end(self, batch_id: str, reason: str, attempts: list[LiveAttempt]) -> bool:
        for attempt in attempts:
            self._ask(attempt, reason)
        if any(self._monotonic() - self._asked[one.lease_id] <= PATIENCE_SECONDS for one in attempts):
            return False
        return finishing.finish(batch_id, run_over=False) in TERMINAL

    def _ask(self, attempt: LiveAttempt, reason: str) -> None:
        if attempt.lease_id not in self._asked:
            stop = json.dumps({"format": 1, "reason": reason}).encode()
            storage.store().replace(layout.stop_key(attempt.prefix), stop)
            self._asked[attempt.lease_id] = self._monotonic()


def _note_gpu_time() -> None:
    with unit_of_work() as work:
        over = gpu_time.over(work)
    for batch_id in over:
        with unit_of_work() as work:
            gpu_time.note_over(work, batch_id)


def _due(work: Work) -> dict[str, str]:
    """Batches that must end now, each with the reason its jobs are given."""
    late = or_(
        Batch.expires_at <= work.now,
        and_(Batch.start_by <= work.now, ~Batch.any_line_ran),
        Batch.gpu_time_over_at.is_not(None),
    )
    live = Batch.status.in_((Status.VALIDATING, Status.IN_PROGRESS))
    rows = work.session.execute(
        select(Batch.id, Batch.status)
        .where(Batch.ended_at.is_(None), or_(Batch.status == Status.CANCELLING, and_(live, late)))
        .order_by(Batch.sequence)
    )
    return {batch_id: "cancel" if status == Status.CANCELLING else "deadline" for batch_id, status in rows}
