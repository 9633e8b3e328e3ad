"""An operator's hold on a batch: no new grant while it lasts. Running attempts go on, and so do the batch's clocks.

(Not the hold of credits, which is the ledger's.) Release takes the hold away, and the reason under it shows again.
"""

from gridline import limits
from gridline.batches import events, moves, waits
from gridline.batches.reasons import ReasonCode
from gridline.batches.tables import Batch
from gridline.capacity import leases
from gridline.customers import audit
from gridline.db.work import Work
from gridline.errors import Conflict, InvalidRequest, NotFound

OPERATOR = "operator"
"""Who customers see on the batch's timeline; the audit names the person."""


def hold(work: Work, batch_id: str, *, note: str, actor: str) -> bool:
    """Hold a batch with a note for its customer. False when it was held before: then nothing is new, the note neither.

    Raises:
        NotFound: no such batch.
        Conflict: it is ending or has ended, so there is nothing to hold.
        InvalidRequest: no note, a long one, or control characters in it.
    """
    said = _checked(note)
    batch = _locked(work, batch_id)
    if not leases.is_open(batch):
        raise Conflict(
            f"Batch {batch.id} has status '{batch.status}': it gets no more GPUs anyway. Nothing to hold."
        )
    if batch.operator_hold_at is not None:
        return False
    under = batch.reason_code
    batch.operator_hold_at, batch.operator_hold_note = work.now, said
    waits.set_reason(work, batch, ReasonCode.HELD_BY_OPERATOR)
    batch.reason_under_hold = under
    leases.drop_grants(work, batch)
    _tell(work, batch, "operator_hold", actor=actor, note=said)
    return True


def release(work: Work, batch_id: str, *, actor: str) -> bool:
    """Take the hold away: the batch is looked at again at once. False when nobody held it.

    Raises:
        NotFound: no such batch.
    """
    batch = _locked(work, batch_id)
    if batch.operator_hold_at is None:
        return False
    under = batch.reason_under_hold
    batch.operator_hold_at = batch.operator_hold_note = batch.reason_under_hold = None
    if batch.ended_at is None:
        waits.set_reason(work, batch, None if under is None else ReasonCode(under))
    _tell(work, batch, "operator_release", actor=actor)
    # Whatever it waits for is looked at again: a GPU, or credit.
    work.notify("capacity")
    work.notify("credits")
    return True


def _locked(work: Work, batch_id: str) -> Batch:
    if work.session.get(Batch, batch_id) is None:
        raise NotFound(f"There is no batch {batch_id!r}. Its id is on its page and in its run.")
    return moves.locked(work, batch_id)


def _checked(note: str) -> str:
    said = " ".join(note.split())
    if not said or len(said) > limits.OPERATOR_NOTE_CHARS_MAX or not said.isprintable():
        raise InvalidRequest(
            f"A note has 1 to {limits.OPERATOR_NOTE_CHARS_MAX} printable characters, got {len(said)} characters. "
            "Say in a sentence why the batch is held: its customer reads it.",
            param="note",
        )
    return said


def _tell(work: Work, batch: Batch, action: str, *, actor: str, **details: str) -> None:
    events.record(work, batch, action, actor=OPERATOR, **details)
    audit.record(
        work,
        account_id=batch.account_id,
        actor=actor,
        action=f"batch.{action}",
        details={"batch_id": batch.id, **details},
    )
    work.notify("batches")
