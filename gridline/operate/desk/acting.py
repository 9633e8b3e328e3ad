"""What an operator does to a batch beside holding it: ending it, and asking for its run again. Each is in the audit."""

from gridline.batches import cancelling, moves
from gridline.batches.states import Status, Waiting
from gridline.batches.tables import Batch
from gridline.capacity import allocator, operator_hold
from gridline.customers import audit
from gridline.db.work import Work
from gridline.errors import Conflict
from gridline.keeper import credit
from gridline.ledger import reading
from gridline.operate.desk import batches

_WITH_A_RUN = (Status.VALIDATING, Status.IN_PROGRESS, Status.FINALIZING)


def cancel(work: Work, batch_id: str, *, actor: str, why: str) -> bool:
    """Cancel a batch as its customer could: what is done is delivered and charged. False when it is ending already.

    Raises:
        NotFound: no such batch.
        Conflict: it is completed, failed or expired.
    """
    batches.known(work, batch_id)
    batch = moves.locked(work, batch_id)
    before = batch.status
    # Customers see that an operator did it; the audit names the person.
    cancelling.cancel(work, account_id=batch.account_id, batch_id=batch_id, actor=operator_hold.OPERATOR)
    if batch.status == before:
        return False
    _record(work, batch, "batch.operator_cancel", actor=actor, why=why)
    return True


def ask_for_run(work: Work, batch_id: str, *, asked: int, actor: str) -> bool:
    """Ask the keeper to start or resume the batch's run; ``asked`` is the newest ask that the operator saw.

    A run that lives goes on undisturbed, one that has ended goes on from where the batch waits, and one that is gone
    is started anew: its tasks find what stands. False when an ask is due, or was made since: a second click.

    Raises:
        NotFound: no such batch.
        Conflict: the batch needs no run any more.
    """
    batches.known(work, batch_id)
    batch = moves.locked(work, batch_id)
    if batch.status not in _WITH_A_RUN:
        raise Conflict(f"Batch {batch_id} has status '{batch.status}': no run of it is wanted any more.")
    if batches.run_is_due(work, batch_id) or batches.runs_asked(work, batch_id) != asked:
        return False
    moves.request_run(work, batch, "resume", from_task=_task(work, batch))
    _record(work, batch, "batch.run_asked", actor=actor)
    return True


def _task(work: Work, batch: Batch) -> str | None:
    """Where a parked batch's run goes on; any other run that has ended goes through all its tasks again."""
    if batch.waiting != Waiting.PARKED:
        return None
    held = reading.hold_of(work, batch.id) is not None
    return allocator.RESUME_FROM if held else credit.RESUME_FROM


def _record(work: Work, batch: Batch, action: str, *, actor: str, **details: str) -> None:
    told = {"batch_id": batch.id, **details}
    audit.record(work, account_id=batch.account_id, actor=actor, action=action, details=told)
