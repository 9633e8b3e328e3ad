"""Cancelling a batch: a status that every waiting and running part sees and acts on."""

from gridline.batches import moves, reading
from gridline.batches.states import Status
from gridline.batches.tables import Batch
from gridline.db.work import Work
from gridline.errors import Conflict

_LIVE = (Status.VALIDATING, Status.IN_PROGRESS)
_TOO_LATE = (Status.COMPLETED, Status.FAILED, Status.EXPIRED)


def cancel(work: Work, *, account_id: str, batch_id: str, actor: str) -> Batch:
    """Ask for the end. A batch that is already ending, or past its deadline, is returned as it stands.

    Raises:
        NotFound: no such batch in this account.
        Conflict: the batch is completed, failed or expired.
    """
    reading.get(work, account_id=account_id, batch_id=batch_id)
    batch = moves.locked(work, batch_id)
    if batch.status in _TOO_LATE:
        raise Conflict(f"Cannot cancel a batch with status '{batch.status}'.", code=None)
    # Past its deadline a batch is already on its way to expired, and its error lines say so.
    if batch.status in _LIVE and work.now < batch.expires_at:
        moves.move(work, batch, Status.CANCELLING, actor=actor)
    return batch
