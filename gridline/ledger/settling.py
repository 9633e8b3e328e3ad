"""Settles a batch's hold: what was delivered is charged, the rest returns, in one transaction and once."""

import logging

from sqlalchemy.dialects.postgresql import insert

from gridline import ids
from gridline.db.work import Work
from gridline.errors import InvariantBroken
from gridline.ledger.books import PLATFORM_OVERRUN, PLATFORM_REVENUE, available, held
from gridline.ledger.posting import Leg, Posting, post
from gridline.ledger.tables import Hold, Resolution

_log = logging.getLogger(__name__)


def settle(
    work: Work, *, batch_id: str, charge_nanos: int, lines: int, input_tokens: int, output_tokens: int
) -> Resolution | None:
    """Charge a batch and return the rest of its hold; the first settlement stands whatever a later one asks.

    Args:
        work: the unit of work that also ends the batch.
        batch_id: whose hold.
        charge_nanos: price of everything delivered. Beyond the hold it is the platform's: the customer never
            pays more than was held, and settling cannot fail for ever.
        lines: delivered lines.
        input_tokens: their input tokens.
        output_tokens: their output tokens.

    Returns:
        How the hold ended; None for a batch that never had one.
    """
    if min(charge_nanos, lines, input_tokens, output_tokens) < 0:
        raise InvariantBroken(
            f"Batch {batch_id} cannot settle a negative charge, count of lines or of tokens."
        )
    hold = work.session.get(Hold, batch_id)
    if hold is None:
        return None
    settled = work.session.get(Resolution, batch_id)
    if settled is not None:
        return settled
    charged = min(charge_nanos, hold.amount_nanos)
    overrun = charge_nanos - charged
    made = work.session.execute(
        insert(Resolution)
        .values(
            batch_id=batch_id,
            account_id=hold.account_id,
            charged_nanos=charged,
            returned_nanos=hold.amount_nanos - charged,
            overrun_nanos=overrun,
            lines=lines,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            transaction_id=_post(work, hold, charged_nanos=charged, overrun_nanos=overrun),
            at=work.now,
        )
        .on_conflict_do_nothing(index_elements=["batch_id"])
        .returning(Resolution.batch_id)
    ).first()
    if made is not None:
        work.notify("credits")
        if overrun:
            _log.error("usage beyond its hold", extra={"batch_id": batch_id, "overrun_nanos": overrun})
    return work.session.get_one(Resolution, batch_id)


def _post(work: Work, hold: Hold, *, charged_nanos: int, overrun_nanos: int) -> str | None:
    """Post what moves; None when nothing does (nothing held, nothing used)."""
    moved = {
        held(hold.account_id): -hold.amount_nanos,
        available(hold.account_id): hold.amount_nanos - charged_nanos,
        PLATFORM_REVENUE: charged_nanos + overrun_nanos,
        PLATFORM_OVERRUN: -overrun_nanos,
    }
    legs = tuple(Leg(book, amount) for book, amount in moved.items() if amount)
    if not legs:
        return None
    posting = Posting(
        id=ids.derived("transaction", "settle", hold.batch_id),
        account_id=hold.account_id,
        kind="settle",
        legs=legs,
        actor="platform",
        why="Delivered lines charged, the rest of the hold returned",
        batch_id=hold.batch_id,
    )
    post(work, posting)
    return posting.id
