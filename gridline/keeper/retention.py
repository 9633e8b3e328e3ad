"""Deletes what has been kept long enough: expired files, working objects of ended batches, what killed writers left.

Rows are marked before a file's object goes, and after a batch's objects have gone, so that a crash in between leaves at
most an object that nobody sees. A download under way keeps its bytes.
"""

from datetime import timedelta

from sqlalchemy import select

from gridline import limits, storage
from gridline.batches import logging_requests, moves
from gridline.batches.tables import Batch
from gridline.db.work import Work, unit_of_work
from gridline.files import keeping
from gridline.profiles.profile import current
from gridline.storage import layout
from gridline.telemetry import metrics

PASS_MAX = 200
"""Files, and batches, of one step: the next one goes on with the rest."""


def retain() -> int:
    """Delete what is due, some at a time; how many files, batches and unfinished objects."""
    return expire_files() + purge_batches() + drop_unfinished()


def drop_unfinished() -> int:
    """Delete what killed writers left of objects that nobody ever saw; how many."""
    with unit_of_work() as work:
        before = work.now - timedelta(hours=limits.UNFINISHED_KEEP_HOURS)
    gone = storage.store().drop_unfinished(before)
    metrics.SWEPT_OBJECTS.labels("unfinished").inc(gone)
    return gone


def expire_files() -> int:
    """Delete files whose time is over and that no live batch reads; how many."""
    with unit_of_work() as work:
        due = keeping.expired(work, most=PASS_MAX)
    gone = 0
    for file_id in due:
        with unit_of_work() as work:
            file = keeping.expire(work, file_id)
        if file is None:
            continue
        # After the commit: a crash between the two leaves an object without a row, which is swept as an orphan.
        storage.store().delete(file.object_key)
        metrics.SWEPT_OBJECTS.labels("files").inc()
        gone += 1
    return gone


def purge_batches() -> int:
    """Delete partitions, segments and progress of batches that ended long enough ago: they hold prompts. How many."""
    with unit_of_work() as work:
        due = _ended(work)
    for batch_id in due:
        if current().request_log_days:
            logging_requests.log_batch(batch_id)  # long done, unless the keeper was away for a day
        deleted = storage.store().delete_prefix(layout.batch_prefix(batch_id))
        metrics.SWEPT_OBJECTS.labels("batches").inc(deleted)
        # After the objects: a crash between the two deletes once more, and finds nothing.
        with unit_of_work() as work:
            batch = moves.locked(work, batch_id)
            batch.objects_deleted_at = batch.objects_deleted_at or work.now
    return len(due)


def _ended(work: Work) -> list[str]:
    kept = work.now - timedelta(hours=limits.BATCH_OBJECTS_KEEP_HOURS)
    found = work.session.scalars(
        select(Batch.id)
        .where(Batch.ended_at <= kept, Batch.objects_deleted_at.is_(None))
        .order_by(Batch.ended_at)
        .limit(PASS_MAX)
    )
    return list(found)
