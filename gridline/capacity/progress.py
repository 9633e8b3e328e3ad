"""Reads a GPU job's progress object and notes on our rows what it says. Renews nothing, decides nothing."""

from sqlalchemy import select

from gridline.batches.tables import Attempt, Batch, Partition
from gridline.db.work import Work
from gridline.lines.progress import JobProgress
from gridline.storage import layout
from gridline.storage.objects import Store


def read(store: Store, attempt_prefix: str) -> JobProgress | None:
    """The attempt's last progress; None while it has written none."""
    data = store.read_or_none(layout.progress_key(attempt_prefix))
    return None if data is None else JobProgress.from_bytes(data)


def note(work: Work, progress: JobProgress, *, batch: Batch, part: Partition, lease_id: str) -> None:
    """Keep what the progress says on attempt, partition and batch; their rows are locked. Counts never go back."""
    attempt = work.session.scalars(select(Attempt).where(Attempt.lease_id == lease_id)).one()
    # An engine that died was healthy: nobody may have read the progress while it said so.
    healthy = progress.engine_healthy or progress.engine_deaths > 0
    attempt.engine_healthy = attempt.engine_healthy or healthy
    part.lines_done = max(part.lines_done, min(progress.done, part.lines))
    part.lines_failed = max(part.lines_failed, min(progress.failed, part.lines - part.lines_done))
    part.engine_version = progress.engine_version or part.engine_version
    part.runner_version = progress.runner_version or part.runner_version
    # A batch that has ended stays as it ended, whatever a late job still tells.
    if batch.ended_at is None and progress.done + progress.failed > 0:
        batch.any_line_ran = True
