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

    Nothing is resumed only to wait again: each resumed batch's ceiling is counted against what is left.
    """
    with unit_of_work() as work:
        resumed = 0
        left: dict[str, int] = {}
        for batch_id, account_id, ceiling in _waiting(work):
            room = left.setdefault(account_id, reading.balance(work, account_id).available_nanos)
            if ceiling <= room:
                left[account_id] = room - ceiling
                resumed += _resume(work, batch_id)
        return resumed


def _waiting(work: Work) -> list[tuple[str, str, int]]:
    asked = select(RunRequest).where(RunRequest.batch_id == Batch.id, RunRequest.done_at.is_(None)).exists()
    rows = work.session.execute(
        select(Batch.id, Batch.account_id, Batch.ceiling_nanos)
        .where(
            Batch.ended_at.is_(None),
            Batch.waiting == Waiting.PARKED,
            Batch.reason_code == ReasonCode.CUSTOMER_CREDIT,
            Batch.status == Status.VALIDATING,
            ~asked,
        )
        .order_by(Batch.account_id, Batch.created_at, Batch.sequence)
    )
    return [(batch_id, account_id, ceiling or 0) for batch_id, account_id, ceiling in rows]


def _resume(work: Work, batch_id: str) -> bool:
    batch = moves.locked(work, batch_id)
    if batch.ended_at is not None or batch.waiting != Waiting.PARKED:
        return False
    moves.request_run(work, batch, "resume", from_task=RESUME_FROM)
    return True
