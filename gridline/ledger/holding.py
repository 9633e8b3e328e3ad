"""Places a batch's hold: the most it can cost moves from available to held, once. Knows no file and no run."""

from typing import Any

from psycopg.types.json import Jsonb
from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from gridline import ids
from gridline.db.work import Work
from gridline.errors import InvariantBroken
from gridline.ledger.books import available, held
from gridline.ledger.errors import InsufficientCredit, WouldOverdraw
from gridline.ledger.posting import Leg, Posting, post
from gridline.ledger.reading import balance
from gridline.ledger.tables import Hold

_HAS_ONE = select(Hold.batch_id).where(Hold.batch_id == bindparam("batch_id"))
_WRITE_DOWN = insert(Hold).on_conflict_do_nothing(index_elements=["batch_id"]).returning(Hold.batch_id)


def place(work: Work, *, batch_id: str, account_id: str, amount_nanos: int, card: dict[str, Any]) -> None:
    """Hold credit for a batch with the copy of its rates; a batch that has its hold keeps the first one.

    Raises:
        InsufficientCredit: available credit does not cover the amount; nothing was written.
    """
    if amount_nanos < 0:
        raise InvariantBroken(f"The hold of {batch_id} is at least 0 nano-credits, got {amount_nanos}.")
    if work.first(_HAS_ONE, batch_id=batch_id) is not None:
        return
    transaction_id = None
    if amount_nanos > 0:
        transaction_id = ids.derived("transaction", "hold", batch_id)
        if not _set_aside(work, transaction_id, amount_nanos, batch_id=batch_id, account_id=account_id):
            return
    written = work.first(
        _WRITE_DOWN,
        batch_id=batch_id,
        account_id=account_id,
        amount_nanos=amount_nanos,
        transaction_id=transaction_id,
        at=work.now,
        card=Jsonb(card),
    )
    if written is None and transaction_id is not None:
        raise InvariantBroken(f"Batch {batch_id} got a hold of nothing while its credit was being set aside.")


def _set_aside(work: Work, transaction_id: str, amount_nanos: int, *, batch_id: str, account_id: str) -> bool:
    """Move the credit; False when that was done before."""
    posting = Posting(
        id=transaction_id,
        account_id=account_id,
        kind="hold",
        legs=(Leg(available(account_id), -amount_nanos), Leg(held(account_id), amount_nanos)),
        actor="platform",
        why="The most the batch can cost",
        batch_id=batch_id,
    )
    try:
        return post(work, posting)
    except WouldOverdraw:
        now = balance(work, account_id).available_nanos
        raise InsufficientCredit(available_nanos=now, needed_nanos=amount_nanos) from None
