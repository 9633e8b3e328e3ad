"""Attempts whose job runs on machines of another scheduler: where that is, whether they may go on, and their end.

Such a job's lease is claimed before there is a machine for it, so nothing writes progress yet: whoever watches the job
renews the lease until it runs. From then on its heartbeat does, as every job's. Knows no AWS and no Airflow.
"""

import json
from collections.abc import Collection
from datetime import timedelta
from typing import Literal

from sqlalchemy import select

from gridline import storage
from gridline.batches.tables import Batch
from gridline.capacity import attempts, leases, pools, reading
from gridline.capacity.pools import AwsBatch
from gridline.capacity.tables import Lease
from gridline.db.work import Work, unit_of_work
from gridline.errors import Unavailable
from gridline.limits import PLACING_SECONDS_MAX
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.settings import settings
from gridline.storage import layout


def place_of(lease_id: str) -> AwsBatch | None:
    """Where the lease's pool runs its jobs; None: as subprocesses of the task.

    Asks the database only when some pool has its jobs elsewhere.
    """
    stated = settings().pools
    if not any(one.aws_batch for one in pools.parse(stated)):
        return None
    with unit_of_work() as work:
        pool = work.session.get_one(Lease, lease_id).pool
    return pools.aws_batch_of(stated, pool)


def begun(batch_id: str, number: int) -> JobOrder | None:
    """The order of a live attempt whose job runs, or should run, elsewhere; None when there is none.

    A task that was cleared, or whose process died, goes on with that job instead of waiting for its lease to lapse.
    """
    if not any(one.aws_batch for one in pools.parse(settings().pools)):
        return None
    order = attempts.begun(batch_id, number)
    return order if order is not None and place_of(order.lease_id) is not None else None


def unwanted(leased: Collection[str], *, placing: Collection[str]) -> set[str]:
    """Which of these leases' jobs must end; the leases of the others that have no machine yet are renewed.

    A running job of a batch that is cancelled or late stops by its marker, in its own time; one without a machine reads no
    marker, so it is ended from outside. What cannot be known (the database is away) is wanted: results are safe either way.
    """
    try:
        with unit_of_work() as work:
            wanted = _wanted(work, leased, placing)
        # One a time: each is a lock of its own, held as briefly as a heartbeat's.
        for lease_id in sorted(wanted.intersection(placing)):
            with unit_of_work() as work:
                leases.renew(work, lease_id)
    except Unavailable:
        return set()
    return set(leased) - wanted


def end(
    batch_id: str, number: int, lease_id: str, job_exit: JobExit | None
) -> Literal["done", "again", "over"]:
    """End the attempt as ``attempts.end`` does, and tell whatever still runs under its lease to stop.

    A submit whose answer was lost, or two of them, may have left a job that nobody watches.
    """
    with unit_of_work() as work:
        prefix = reading.attempt_prefix(work, lease_id)
    if prefix is not None:
        stop = json.dumps({"format": 1, "reason": "lease_lost"})
        storage.store().replace(layout.stop_key(prefix), stop.encode())
    return attempts.end(batch_id, number, lease_id, job_exit)


def _wanted(work: Work, leased: Collection[str], placing: Collection[str]) -> set[str]:
    rows = work.session.execute(
        select(Lease, Batch)
        .join(Batch, Batch.id == Lease.batch_id)
        .where(Lease.id.in_(leased), Lease.released_at.is_(None))
    )
    longest = timedelta(seconds=PLACING_SECONDS_MAX)
    return {
        lease.id
        for lease, batch in rows
        if lease.id not in placing
        or (
            leases.is_open(batch)
            and leases.in_time(batch, work.now)
            and lease.claimed_at is not None
            and work.now - lease.claimed_at < longest
        )
    }
