"""Resumes batches that wait for their account's credit, once it covers the most that they can cost."""

from sqlalchemy import select

from gridline.batches import moves
from gridline.batches.reasons import ReasonCode
from gridline.batches.states import Status, Waiting
from gridline.batches.tables import Batch, RunRequest
from gridline.db.work import Work, unit_of_work
from gridline.ledger import reading

RESUME_FROM = "hold_credits"


def resume_funded() -> int:
    """Ask for the runs of parked batches that credit now covers, oldest first; how many.

    Nothing is resumed only to wait again: each resumed batch's ceiling is counted against what is left, also
    while its run is on its way to hold it.
    """
    with unit_of_work() as work:
        waiting = _waiting(work)
        accounts = {batch.account_id for batch, _ in waiting}
        left = {one: reading.balance(work, one).available_nanos for one in accounts}
        for batch, asked in waiting:
            if asked:
                left[batch.account_id] -= batch.ceiling_nanos or 0
        resumed = 0
        for batch, asked in waiting:
            if not asked and (batch.ceiling_nanos or 0) <= left[batch.account_id]:
                left[batch.account_id] -= batch.ceiling_nanos or 0
                resumed += _resume(work, batch.id)
        return resumed


def _waiting(work: Work) -> list[tuple[Batch, bool]]:
    """Batches parked for credit, oldest first, each with whether its run was already asked for."""
    asked = select(RunRequest).where(RunRequest.batch_id == Batch.id, RunRequest.done_at.is_(None)).exists()
    rows = work.session.execute(
        select(Batch, asked)
        .where(
            Batch.ended_at.is_(None),
            Batch.waiting == Waiting.PARKED,
            Batch.reason_code == ReasonCode.CUSTOMER_CREDIT,
            Batch.status == Status.VALIDATING,
        )
        .order_by(Batch.created_at, Batch.sequence)
    )
    return [(batch, bool(is_asked)) for batch, is_asked in rows]


def _resume(work: Work, batch_id: str) -> bool:
    batch = moves.locked(work, batch_id)
    if batch.ended_at is not None or batch.waiting != Waiting.PARKED:
        return False
    moves.request_run(work, batch, "resume", from_task=RESUME_FROM)
    return True
