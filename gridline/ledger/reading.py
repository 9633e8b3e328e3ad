"""Reads the books: balances, a batch's hold and resolution, its receipt. Writes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from gridline.clock import Days, unix
from gridline.db.work import Work
from gridline.errors import NotFound
from gridline.ledger.books import REVENUE, available, held
from gridline.ledger.tables import Balance, Entry, Hold, Resolution, Transaction
from gridline.money import credits_text
from gridline.usage import facts
from gridline.usage.tables import UsageFact


@dataclass(frozen=True)
class Balances:
    """An account's credit in nano-credits: what it can spend, and what is set aside for open batches."""

    available_nanos: int
    held_nanos: int


def balance(work: Work, account_id: str) -> Balances:
    """The account's balances as this transaction sees them; zeros before its books are opened."""
    names = (available(account_id), held(account_id))
    rows = work.session.execute(select(Balance.book, Balance.balance_nanos).where(Balance.book.in_(names)))
    found = {row.book: row.balance_nanos for row in rows}
    return Balances(available_nanos=found.get(names[0], 0), held_nanos=found.get(names[1], 0))


def revenue_nanos(work: Work) -> int:
    """What customers were charged by now, less what was refunded."""
    of_revenue = Balance.account_id.is_(None) & Balance.book.startswith(REVENUE)
    return int(work.session.scalar(select(func.sum(Balance.balance_nanos)).where(of_revenue)) or 0)


def hold_of(work: Work, batch_id: str) -> Hold | None:
    """The batch's hold, open or resolved."""
    return work.session.get(Hold, batch_id)


def resolution_of(work: Work, batch_id: str) -> Resolution | None:
    """How the batch's hold ended; None while it is open or where there is none."""
    return work.session.get(Resolution, batch_id)


def open_holds(work: Work) -> Sequence[Hold]:
    """Holds without a resolution, oldest first: each belongs to a batch that has not ended, or to reconcile."""
    resolved = select(Resolution.batch_id).where(Resolution.batch_id == Hold.batch_id)
    return work.session.scalars(select(Hold).where(~resolved.exists()).order_by(Hold.at, Hold.batch_id)).all()


def refunded(work: Work, batch_id: str) -> int:
    """Nano-credits of a batch's charge that were given back."""
    total = work.session.scalar(
        select(func.sum(Entry.amount_nanos))
        .join(Transaction, Transaction.id == Entry.transaction_id)
        .where(Transaction.batch_id == batch_id, Transaction.kind == "refund", Entry.amount_nanos > 0)
    )
    return int(total or 0)


def used_in(work: Work, account_id: str, days: Days) -> int:
    """Nano-credits of an account's holds of these days, less what came back of them by now."""
    used = func.sum(Hold.amount_nanos - func.coalesce(Resolution.returned_nanos, 0))
    total = work.session.scalar(
        select(used)
        .select_from(Hold)
        .outerjoin(Resolution, Resolution.batch_id == Hold.batch_id)
        .where(Hold.account_id == account_id, Hold.at >= days.begin, Hold.at < days.end)
    )
    return int(total or 0)


def receipt(work: Work, batch_id: str, account_id: str) -> dict[str, Any]:
    """What a batch cost and why, as the API shows it: the rates copied at hold, tokens, charge, what returned.

    Raises:
        NotFound: the account has no batch of this id that held credit.
    """
    hold = work.session.get(Hold, batch_id)
    if hold is None or hold.account_id != account_id:
        raise NotFound(f"Batch {batch_id} has no receipt: no credit was held, so nothing was charged.")
    end = work.session.get(Resolution, batch_id)
    card = hold.card
    moved = [one.transaction_id for one in (hold, end) if one is not None and one.transaction_id]
    return {
        "object": "gridline.receipt",
        "batch_id": batch_id,
        "state": "held" if end is None else "settled",
        "model": card["id"],
        "model_commit": card["commit"],
        "rates": {
            "input_token": credits_text(card["input_price_nanos"]),
            "output_token": credits_text(card["output_price_nanos"]),
        },
        "hold": credits_text(hold.amount_nanos),
        "charged": None if end is None else credits_text(end.charged_nanos),
        "returned": None if end is None else credits_text(end.returned_nanos),
        "refunded": credits_text(refunded(work, batch_id)),
        "lines": None if end is None else end.lines,
        "input_tokens": None if end is None else end.input_tokens,
        "output_tokens": None if end is None else end.output_tokens,
        "usage": [_used(fact) for fact in facts.of_batch(work, batch_id)],
        "held_at": unix(hold.at),
        "settled_at": None if end is None else unix(end.at),
        "transactions": [*moved, *_refunds(work, batch_id)],
    }


def _refunds(work: Work, batch_id: str) -> Sequence[str]:
    return work.session.scalars(
        select(Transaction.id)
        .where(Transaction.batch_id == batch_id, Transaction.kind == "refund")
        .order_by(Transaction.sequence)
    ).all()


def _used(fact: UsageFact) -> dict[str, Any]:
    return {
        "model": fact.model,
        "lines": fact.lines,
        "input_tokens": fact.input_tokens,
        "output_tokens": fact.output_tokens,
        "amount": credits_text(fact.amount_nanos),
    }
