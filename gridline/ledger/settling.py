"""Settles a batch's hold: what was delivered is charged, the rest returns, in one transaction and once."""

import logging

from sqlalchemy import bindparam, exists, select
from sqlalchemy.dialects.postgresql import insert

from gridline import ids
from gridline.db.work import Work
from gridline.errors import InvariantBroken
from gridline.ledger.books import PLATFORM_OVERRUN, available, held, revenue
from gridline.ledger.posting import Leg, Posting, post
from gridline.ledger.tables import Hold, Resolution

_log = logging.getLogger(__name__)

_OPEN_HOLD = select(Hold.account_id, Hold.amount_nanos).where(
    Hold.batch_id == bindparam("batch_id"), ~exists().where(Resolution.batch_id == Hold.batch_id)
)
_WRITE_DOWN = (
    insert(Resolution).on_conflict_do_nothing(index_elements=["batch_id"]).returning(Resolution.batch_id)
)


def settle(
    work: Work, *, batch_id: str, charge_nanos: int, lines: int, input_tokens: int, output_tokens: int
) -> None:
    """Charge a batch and return the rest of its hold; the first settlement stands whatever a later one asks.

    A batch that never had a hold has nothing to settle.

    Args:
        work: the unit of work that also ends the batch.
        batch_id: whose hold.
        charge_nanos: price of everything delivered. Beyond the hold it is the platform's: the customer never
            pays more than was held, and settling cannot fail for ever.
        lines: delivered lines.
        input_tokens: their input tokens.
        output_tokens: their output tokens.
    """
    if min(charge_nanos, lines, input_tokens, output_tokens) < 0:
        raise InvariantBroken(
            f"Batch {batch_id} cannot settle a negative charge, count of lines or of tokens."
        )
    open_hold = work.first(_OPEN_HOLD, batch_id=batch_id)
    if open_hold is None:
        return
    account_id, held_nanos = open_hold
    charged = min(charge_nanos, held_nanos)
    overrun = charge_nanos - charged
    posting = _posting(batch_id, account_id, held_nanos, charged_nanos=charged, overrun_nanos=overrun)
    if posting is not None:
        post(work, posting)
    made = work.first(
        _WRITE_DOWN,
        batch_id=batch_id,
        account_id=account_id,
        charged_nanos=charged,
        returned_nanos=held_nanos - charged,
        overrun_nanos=overrun,
        lines=lines,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        transaction_id=posting and posting.id,
        at=work.now,
    )
    if made is not None and overrun:
        _log.error("usage beyond its hold", extra={"batch_id": batch_id, "overrun_nanos": overrun})


def _posting(
    batch_id: str, account_id: str, held_nanos: int, *, charged_nanos: int, overrun_nanos: int
) -> Posting | None:
    """What moves; None when nothing does (nothing held, nothing used)."""
    moved = {
        held(account_id): -held_nanos,
        available(account_id): held_nanos - charged_nanos,
        revenue(batch_id): charged_nanos + overrun_nanos,
        PLATFORM_OVERRUN: -overrun_nanos,
    }
    legs = tuple(Leg(book, amount) for book, amount in moved.items() if amount)
    if not legs:
        return None
    return Posting(
        id=ids.derived("transaction", "settle", batch_id),
        account_id=account_id,
        kind="settle",
        legs=legs,
        actor="platform",
        why="Delivered lines charged, the rest of the hold returned",
        batch_id=batch_id,
    )
