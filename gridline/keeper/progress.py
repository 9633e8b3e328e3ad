"""Follows running GPU jobs by their progress objects: live counts, renewed leases, and the end of those that stopped.

The order matters: first every heartbeat is read and renewed, then what is overdue lapses. So a keeper that was
away lets no live job's lease lapse. What this process saw for itself it judges by its monotonic clock, so that a
database whose clock is set forward or back ends no job early and keeps no dead one.
"""

import time
from collections.abc import Callable

from sqlalchemy import func, select

from gridline import storage
from gridline.batches import moves, waits
from gridline.batches.reasons import ReasonCode
from gridline.batches.tables import Batch, Partition
from gridline.capacity import leases, progress, reading
from gridline.capacity.reading import LiveAttempt
from gridline.db.work import Work, unit_of_work
from gridline.limits import LEASE_TTL_SECONDS
from gridline.lines.progress import JobProgress
from gridline.telemetry import metrics

LOADING = "loading"


class ProgressFollower:
    """Remembers each lease's last sequence number: it is a number that moves, not a clock, that shows life."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seen: dict[str, int] = {}
        self._deaths: dict[str, int] = {}
        self._moved_at: dict[str, float] = {}
        self._monotonic = monotonic

    def follow(self) -> int:
        """Read every running attempt's progress once; how many of them moved since the last look."""
        with unit_of_work() as work:
            attempts = reading.running(work)
        live = {one.lease_id for one in attempts}
        self._seen = {lease_id: last for lease_id, last in self._seen.items() if lease_id in live}
        self._deaths = {lease_id: count for lease_id, count in self._deaths.items() if lease_id in live}
        self._moved_at = {lease_id: at for lease_id, at in self._moved_at.items() if lease_id in live}
        moved = sum([self._look(one) for one in attempts])
        still = {lease_id: self._monotonic() - at for lease_id, at in self._moved_at.items()}
        alive = [one for one, seconds in still.items() if seconds < LEASE_TTL_SECONDS]
        metrics.LEASES_LAPSED.inc(leases.lapse(alive=alive, dead=[one for one in still if one not in alive]))
        return moved

    def _look(self, attempt: LiveAttempt) -> bool:
        stated = progress.read(storage.store(), attempt.prefix)
        # Seen for the first time counts as moved: this keeper may just have started.
        if stated is None or stated.sequence == self._seen.get(attempt.lease_id):
            return False
        with unit_of_work() as work:
            _note(work, attempt, stated)
        metrics.ENGINE_DEATHS.inc(max(0, stated.engine_deaths - self._deaths.get(attempt.lease_id, 0)))
        self._deaths[attempt.lease_id] = stated.engine_deaths
        self._seen[attempt.lease_id] = stated.sequence
        self._moved_at[attempt.lease_id] = self._monotonic()
        return True


def _note(work: Work, attempt: LiveAttempt, stated: JobProgress) -> None:
    batch = moves.locked(work, attempt.batch_id)
    part = leases.partition(work, batch, attempt.partition)
    # Released in the meantime: whoever released it has noted its last words.
    if not leases.renew(work, attempt.lease_id):
        return
    progress.note(work, stated, batch=batch, part=part, lease_id=attempt.lease_id)
    # A batch that is being stopped shows what it had: what its jobs still close counts only if it comes before the seal.
    if not leases.is_open(batch) or work.now >= batch.expires_at:
        return
    work.session.flush()
    _count(work, batch)
    _tell_loading(work, batch, stated)


def _count(work: Work, batch: Batch) -> None:
    """``request_counts`` as they are now; lines refused at validation belong to no partition."""
    sums = select(
        func.coalesce(func.sum(Partition.lines), 0),
        func.coalesce(func.sum(Partition.lines_done), 0),
        func.coalesce(func.sum(Partition.lines_failed), 0),
    )
    lines, done, failed = work.session.execute(sums.where(Partition.batch_id == batch.id)).one()
    batch.completed = int(done)
    batch.failed = batch.total - int(lines) + int(failed)


def _tell_loading(work: Work, batch: Batch, stated: JobProgress) -> None:
    """``model_loading`` while the first engine loads; gone as soon as something runs."""
    if stated.state == LOADING and not batch.any_line_ran and batch.reason_code is None:
        changed = waits.set_reason(work, batch, ReasonCode.MODEL_LOADING)
    elif stated.state != LOADING and batch.reason_code == ReasonCode.MODEL_LOADING:
        changed = waits.set_reason(work, batch, None)
    else:
        return
    if changed:
        work.notify("batches")
