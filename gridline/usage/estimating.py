"""What a batch of a file would cost, as the API shows it: the most, what is likely, and whether the account covers it."""

from typing import Any

from gridline.customers import accounts, spending
from gridline.db.work import Work
from gridline.ledger import reading
from gridline.lines.estimating import Guess
from gridline.money import credits_text
from gridline.usage import likely
from gridline.usage.charging import charge_nanos


def estimate_object(work: Work, account_id: str, guess: Guess) -> dict[str, Any]:
    """The numbers of an estimate. Of a file with bad lines only those that say so: such a batch fails and costs nothing."""
    balance = reading.balance(work, account_id)
    account = accounts.get(work, account_id)
    today, month = spending.today(work, account), spending.this_month(work, account)
    bad = guess.card is None or guess.errors_total > 0
    shown: dict[str, Any] = {
        "model": None if guess.card is None else guess.card.id,
        "lines": guess.lines,
        "errors": _errors(guess),
        "exact": guess.exact and not bad,
        "input_tokens": None if bad else guess.input_tokens,
        "output_tokens_max": None if bad else guess.output_tokens_max,
        "ceiling": None if bad else credits_text(guess.ceiling_nanos),
        "likely": None,
        "likely_basis": None,
        "available": credits_text(balance.available_nanos),
        "covered": None if bad else guess.ceiling_nanos <= balance.available_nanos,
        "daily_credits": today.shown(),
        "within_daily_limit": None if bad else guess.ceiling_nanos <= today.left_nanos,
        "monthly_budget": None if month is None else month.shown(),
        "within_monthly_budget": None if bad or month is None else guess.ceiling_nanos <= month.left_nanos,
    }
    if guess.card is not None and not bad:
        share = likely.share(work, account_id, guess.card.id)
        written = share.of(guess.output_tokens_max)
        price = charge_nanos(guess.card.copy(), guess.input_tokens, written)
        shown["likely"] = credits_text(min(price, guess.ceiling_nanos))
        shown["likely_basis"] = share.basis
    return shown


def _errors(guess: Guess) -> dict[str, Any] | None:
    if not guess.errors_total:
        return None
    return {
        "object": "list",
        "data": [error.as_dict() for error in guess.errors],
        "total": guess.errors_total,
    }
