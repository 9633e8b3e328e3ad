"""Sweeps uploads whose time is over: parts of those never completed, and what a crash left of the others."""

from gridline import storage
from gridline.db.work import unit_of_work
from gridline.files import uploads
from gridline.storage import layout
from gridline.telemetry import metrics

PASS_MAX = 100


def sweep() -> int:
    """Delete the objects of every upload that is due, some at a time; how many uploads."""
    with unit_of_work() as work:
        due = uploads.due(work, most=PASS_MAX)
    for upload in due:
        parts = storage.store().delete_prefix(layout.upload_prefix(upload.account_id, upload.id))
        metrics.SWEPT_OBJECTS.labels("uploads").inc(parts)
        # After the objects: a crash between the two is swept again.
        with unit_of_work() as work:
            uploads.swept(work, upload)
    return len(due)
