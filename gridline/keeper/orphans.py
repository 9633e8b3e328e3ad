"""Deletes objects that no row names: what crashes between an object and its row left, and what came too late.

An object is never swept while it may still get its row: it must be old, and a batch that has not ended keeps the result
files that its end will name. Ages are told by the store's clock and compared with ours, so the bound is a day.
"""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import Select, select

from gridline import limits, storage
from gridline.batches import results
from gridline.batches.tables import Batch
from gridline.catalog.tables import Adapter
from gridline.db.work import Work, unit_of_work
from gridline.files.tables import File, Upload
from gridline.storage import layout
from gridline.telemetry import metrics

log = logging.getLogger(__name__)

IDS_MAX = 1_000
"""Ids asked for in one statement."""
SUSPECT_MIN = 100
"""More orphans than this, and most of all objects, look like another installation's store: nothing is deleted."""


def sweep() -> int:
    """Look at every object once and delete the orphans among the old ones; how many."""
    with unit_of_work() as work:
        now = work.now
    swept = 0
    for prefix in (layout.FILES, layout.UPLOADS, layout.ADAPTERS, layout.BATCHES):
        orphans = _orphans(prefix, now - timedelta(hours=limits.ORPHANS_KEEP_HOURS))
        for key in orphans:
            storage.store().delete(key)
        metrics.SWEPT_OBJECTS.labels("orphans").inc(len(orphans))
        swept += len(orphans)
    return swept


def _orphans(prefix: str, before: datetime) -> list[str]:
    old = [key for key, at in storage.store().modified(prefix).items() if at < before]
    wanted = _wanted(prefix, {layout.owner_id(key) or "" for key in old}) if old else set()
    found = [key for key in old if layout.owner_id(key) not in wanted]
    if len(found) > SUSPECT_MIN and 2 * len(found) > len(old):
        log.error(
            "%s of %s old objects under %s have no row: nothing of them is deleted. Is this the store's own database? "
            "If it is, delete them by hand.",
            len(found), len(old), prefix,
        )  # fmt: skip
        return []
    return found


def _wanted(prefix: str, ids: set[str]) -> set[str]:
    """Those of the ids whose objects are, or may become, somebody's."""
    with unit_of_work() as work:
        # Asked first: a batch that ends after this look keeps its files all the same, one that ended before has rows.
        coming = _coming(work) if prefix == layout.FILES else set()
        rows = _ROWS[prefix]
        return coming | {found for some in _chunks(ids) for found in work.session.scalars(rows(some))}


def _coming(work: Work) -> set[str]:
    open_batches = work.session.scalars(select(Batch.id).where(Batch.ended_at.is_(None)))
    return {file_id for batch_id in open_batches for file_id in results.file_ids(batch_id)}


def _files(ids: list[str]) -> Select[str]:
    return select(File.id).where(File.id.in_(ids), File.deleted_at.is_(None))


def _uploads(ids: list[str]) -> Select[str]:
    return select(Upload.id).where(Upload.id.in_(ids), Upload.swept_at.is_(None))


def _adapters(ids: list[str]) -> Select[str]:
    # Retired ones too: batches that were validated before may still be waiting.
    return select(Adapter.short_id).where(Adapter.short_id.in_(ids))


def _batches(ids: list[str]) -> Select[str]:
    return select(Batch.id).where(Batch.id.in_(ids), Batch.objects_deleted_at.is_(None))


_ROWS = {
    layout.FILES: _files,
    layout.UPLOADS: _uploads,
    layout.ADAPTERS: _adapters,
    layout.BATCHES: _batches,
}


def _chunks(ids: Iterable[str]) -> Iterable[list[str]]:
    ordered = sorted(ids)
    return (ordered[start : start + IDS_MAX] for start in range(0, len(ordered), IDS_MAX))
