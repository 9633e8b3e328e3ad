"""The allocator: the only writer of grants. Runs on every notification, twice or late as it may; decides nothing itself.

One at a time by an advisory lock. What admission decided on unlocked rows is looked at again under the batch's
lock, one batch at a time, before it is written.
"""

from datetime import timedelta
from itertools import islice

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from gridline import ids, limits
from gridline.batches import moves, waits
from gridline.batches.reasons import ReasonCode
from gridline.batches.states import Status, Waiting
from gridline.batches.tables import Batch, RunRequest
from gridline.capacity import leases, queue, reading
from gridline.capacity.admission import Grant, Wait, decide
from gridline.capacity.tables import Lease
from gridline.db.work import Work, unit_of_work

RESUME_FROM = "wait_for_capacity"
"""The task that a parked batch's run is resumed from when it gets its grant."""

WAITS_MAX = 100
"""Waits stored by one look, so that grants and cancels wait for none of many; each wakes the next look."""

_LOCK = 0x616C_6C6F
_OURS = (ReasonCode.GRIDLINE_CAPACITY, ReasonCode.PLATFORM_DAILY_LIMIT)
"""Waits for what is the platform's own: being in progress, and that never goes back."""


def allocate() -> int:
    """Grant what can be granted, store why the others wait; how many grants were written."""
    with unit_of_work() as work:
        work.session.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        dropped = leases.drop_unwanted(work)
        waiting = queue.load(work)
        decision = decide(
            waiting.pools, waiting.accounts, waiting.candidates, budget_nanos=waiting.budget_nanos
        )
        granted = sum([_grant(work, one) for one in decision.grants])
        news = (one for one in decision.waits if _is_news(one, *waiting.stored[one.batch_id]))
        for one in islice(news, WAITS_MAX):
            _wait(work, one)
        if granted or dropped:
            work.notify("capacity")
        return granted


def _grant(work: Work, grant: Grant) -> bool:
    batch = moves.locked(work, grant.batch_id)
    if not leases.is_open(batch) or not leases.in_time(batch, work.now) or batch.operator_hold_at is not None:
        return False
    if leases.partition(work, batch, grant.partition).state != "waiting":
        return False
    made = work.session.execute(
        insert(Lease)
        .values(
            id=ids.new("lease"),
            pool=grant.pool,
            account_id=batch.account_id,
            batch_id=batch.id,
            partition=grant.partition,
            granted_at=work.now,
            claim_by=_claim_by(work, batch),
        )
        .on_conflict_do_nothing()
        .returning(Lease.id)
    ).first()
    if made is not None and batch.reason_code == ReasonCode.CUSTOMER_CREDIT:
        waits.set_reason(work, batch, ReasonCode.STARTING)
    return made is not None


def _claim_by(work: Work, batch: Batch) -> object:
    """When the grant lapses unclaimed: a parked batch's clock stands until its run's resume was accepted."""
    clock = work.now + timedelta(seconds=limits.GRANT_CLAIM_SECONDS)
    if batch.waiting != Waiting.PARKED:
        return clock
    asked = work.session.scalar(
        select(func.count()).where(
            RunRequest.batch_id == batch.id, RunRequest.kind == "resume", RunRequest.done_at.is_(None)
        )
    )
    if not asked:
        if reading.live_of_batch(work, batch.id):
            return clock  # its run was resumed for an earlier grant and is on its way
        moves.request_run(work, batch, "resume", from_task=RESUME_FROM)
        work.session.flush()
    return None


def _is_news(wait: Wait, status: str, stored: str | None) -> bool:
    # What a lost job left waits for a GPU too, and says more by its own reason.
    if stored == ReasonCode.RETRYING and wait.code is ReasonCode.GRIDLINE_CAPACITY:
        return False
    moved = wait.code not in _OURS or status == Status.IN_PROGRESS
    return stored != wait.code or not moved


def _wait(work: Work, wait: Wait) -> None:
    """Store why the batch waits, if what admission saw still stands."""
    batch = moves.locked(work, wait.batch_id)
    held = batch.operator_hold_at is not None
    if not leases.is_open(batch) or held != (wait.code is ReasonCode.HELD_BY_OPERATOR):
        return
    if wait.code in _OURS and batch.status == Status.VALIDATING:
        moves.move(work, batch, Status.IN_PROGRESS)
    if waits.set_reason(work, batch, wait.code):
        work.notify("batches")
