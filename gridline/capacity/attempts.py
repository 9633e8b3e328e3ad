"""Task bodies of one partition: begin an attempt by claiming its grant, end it by giving the lease back.

An attempt is a row of ours, not Airflow's try number; clearing or retrying a task adds none.
"""

from typing import Literal

from sqlalchemy import select

from gridline import storage
from gridline.batches import events, moves, waits
from gridline.batches.endings import PARTITION_OVER
from gridline.batches.states import Status
from gridline.batches.tables import Attempt, Batch, Partition
from gridline.capacity import leases, progress, reading
from gridline.capacity.leases import Outcome
from gridline.capacity.tables import Lease
from gridline.clock import unix
from gridline.db.work import Work, unit_of_work
from gridline.errors import Unavailable
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.storage import layout

_OUTCOMES = {
    JobExit.DONE: Outcome.DONE,
    JobExit.STOPPED: Outcome.STOPPED,
    JobExit.ENGINE_UNHEALTHY: Outcome.ENGINE_UNHEALTHY,
    JobExit.CRASHED: Outcome.CRASHED,
}


def begin(batch_id: str, number: int) -> JobOrder | Literal["over"] | None:
    """Claim the partition's grant and start an attempt under it.

    Returns:
        The order for the GPU job; ``"over"`` when the partition or its batch needs no more attempts; None while
        there is no grant, or another task claimed it and its lease still lives: wait for the next. Past its start
        bound or its deadline a batch waits too, for the keeper to end it.
    """
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        part = leases.partition(work, batch, number)
        if not leases.is_open(batch) or part.state in PARTITION_OVER:
            return "over"
        if not leases.in_time(batch, work.now):
            leases.drop_grants(work, batch)
            return None
        lease = leases.live(work, batch_id, number)
        if lease is None or lease.claimed_at is not None:
            return None
        leases.claim(work, lease)
        _start(work, batch, part)
        earlier = _earlier(work, batch, part)
        attempt = _started(work, part, lease, number=earlier[-1].number + 1 if earlier else 1)
        return _order(batch, attempt, earlier)


def begun(batch_id: str, number: int) -> JobOrder | None:
    """The order of the attempt that runs under the partition's claimed lease; None when there is none.

    For whoever finds a job again that it, or a task before it, started elsewhere.
    """
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        part = leases.partition(work, batch, number)
        lease = leases.live(work, batch_id, number)
        if lease is None or lease.claimed_at is None:
            return None
        *earlier, attempt = _earlier(work, batch, part)
        return _order(batch, attempt, earlier)


def end(
    batch_id: str, number: int, lease_id: str, job_exit: JobExit | None
) -> Literal["done", "again", "over"]:
    """End the attempt under a lease and give the GPU back at once.

    A lease that lapsed or was given back before changes nothing: what is answered is how the partition stands.

    Args:
        batch_id: whose partition.
        number: the partition's number.
        lease_id: the lease under which the job ran.
        job_exit: how the job ended; None when nobody saw it end, which counts as a crash.

    Returns:
        ``"done"``: every line has a result; ``"again"``: wait for another grant; ``"over"``: no more attempts.
    """
    with unit_of_work() as work:
        prefix = reading.attempt_prefix(work, lease_id)
    last = progress.read(storage.store(), prefix) if prefix else None
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        part = leases.partition(work, batch, number)
        lease = leases.live(work, batch_id, number)
        if lease is not None and lease.id == lease_id and lease.claimed_at is not None:
            if last is not None:
                progress.note(work, last, batch=batch, part=part, lease_id=lease_id)
            leases.give_back(work, lease, _outcome(work, lease_id, job_exit), batch=batch, part=part)
        return _standing(work, batch, part)


def may_go_on(lease_id: str) -> bool:
    """Whether the job under this lease may still run: not once the lease was released, however that came.

    What cannot be known (the database is away) is a yes: the job's results are safe either way.
    """
    try:
        with unit_of_work() as work:
            return leases.is_live(work, lease_id)
    except Unavailable:
        return True


def _start(work: Work, batch: Batch, part: Partition) -> None:
    """The batch's first lease is its start; a running batch has no reason to wait."""
    part.state = "running"
    if part.model_commit is None and batch.card is not None:
        part.model_commit = batch.card["commit"]
    if batch.status == Status.VALIDATING:
        moves.move(work, batch, Status.IN_PROGRESS)
    if batch.first_lease_at is None:
        batch.first_lease_at = work.now
        events.record(work, batch, "started")
    batch.waiting = None
    if waits.set_reason(work, batch, None):
        work.notify("batches")


def _earlier(work: Work, batch: Batch, part: Partition) -> list[Attempt]:
    """The partition's attempts, oldest first."""
    mine = select(Attempt).where(Attempt.batch_id == batch.id, Attempt.partition == part.number)
    return list(work.session.scalars(mine.order_by(Attempt.number)))


def _started(work: Work, part: Partition, lease: Lease, *, number: int) -> Attempt:
    attempt = Attempt(
        batch_id=part.batch_id, partition=part.number, number=number, lease_id=lease.id, started_at=work.now
    )
    work.session.add(attempt)
    return attempt


def _order(batch: Batch, attempt: Attempt, earlier: list[Attempt]) -> JobOrder:
    return JobOrder(
        spec_key=layout.partition_spec_key(batch.id, attempt.partition),
        attempt_prefix=_prefix(attempt),
        earlier_prefixes=tuple(
            # An attempt whose engine never became healthy wrote no segment, and there may be very many of them.
            _prefix(one)
            for one in earlier
            if one.outcome != Outcome.ENGINE_UNHEALTHY
        ),
        deadline_unix=unix(batch.expires_at),
    )


def _prefix(attempt: Attempt) -> str:
    return layout.attempt_prefix(attempt.batch_id, attempt.partition, attempt.number, attempt.lease_id)


def _outcome(work: Work, lease_id: str, job_exit: JobExit | None) -> Outcome:
    """A job that died before its engine was healthy is no better than one that says so."""
    outcome = _OUTCOMES[JobExit.CRASHED if job_exit is None else job_exit]
    healthy = work.session.scalars(select(Attempt.engine_healthy).where(Attempt.lease_id == lease_id)).one()
    return Outcome.ENGINE_UNHEALTHY if outcome is Outcome.CRASHED and not healthy else outcome


def _standing(work: Work, batch: Batch, part: Partition) -> Literal["done", "again", "over"]:
    if part.state == "done":
        return "done"
    over = part.state in PARTITION_OVER or not leases.is_open(batch) or work.now >= batch.expires_at
    return "over" if over else "again"
