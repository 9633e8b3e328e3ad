"""Places a batch's hold: the most it can cost moves from available to held, once. Knows no file and no run."""

from typing import Any

from sqlalchemy.dialects.postgresql import insert

from gridline import ids
from gridline.db.work import Work
from gridline.errors import InvariantBroken
from gridline.ledger.books import available, held
from gridline.ledger.errors import InsufficientCredit, WouldOverdraw
from gridline.ledger.posting import Leg, Posting, post
from gridline.ledger.reading import balance
from gridline.ledger.tables import Hold


def place(work: Work, *, batch_id: str, account_id: str, amount_nanos: int, card: dict[str, Any]) -> None:
    """Hold credit for a batch with the copy of its rates; a batch that has its hold keeps the first one.

    Raises:
        InsufficientCredit: available credit does not cover the amount; nothing was written.
    """
    if amount_nanos < 0:
        raise InvariantBroken(f"The hold of {batch_id} is at least 0 nano-credits, got {amount_nanos}.")
    if work.session.get(Hold, batch_id) is not None:
        return
    transaction_id = None
    if amount_nanos > 0:
        transaction_id = ids.derived("transaction", "hold", batch_id)
        _set_aside(work, transaction_id, amount_nanos, batch_id=batch_id, account_id=account_id)
    work.session.execute(
        insert(Hold)
        .values(
            batch_id=batch_id,
            account_id=account_id,
            amount_nanos=amount_nanos,
            transaction_id=transaction_id,
            at=work.now,
            card=card,
        )
        .on_conflict_do_nothing(index_elements=["batch_id"])
    )


def _set_aside(work: Work, transaction_id: str, amount_nanos: int, *, batch_id: str, account_id: str) -> None:
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
        post(work, posting)
    except WouldOverdraw:
        now = balance(work, account_id).available_nanos
        raise InsufficientCredit(available_nanos=now, needed_nanos=amount_nanos) from None
