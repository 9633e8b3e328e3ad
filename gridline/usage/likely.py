"""How much of what batches may write they do write, from those that have ended. Whole numbers only."""

from typing import Literal, NamedTuple

from sqlalchemy import BigInteger, Text, column, select, table

from gridline.db.work import Work
from gridline.ledger.tables import Hold
from gridline.usage.tables import UsageFact

BATCHES_LOOKED_AT = 50
"""The newest ones: what a model is used for changes."""

# Only the columns this room asks about: batches import usage, never the reverse.
_BATCHES = table(
    "batches", column("id", Text), column("status", Text), column("input_tokens_estimate", BigInteger)
)


class Share(NamedTuple):
    """Tokens written of tokens that could be written, and whose batches say so."""

    written: int
    possible: int
    basis: Literal["account", "platform", "default"]

    def of(self, tokens_max: int) -> int:
        """What is likely written of so many, rounded up."""
        return min(tokens_max, -(-tokens_max * self.written // self.possible))


DEFAULT = Share(1, 2, "default")
"""Without any history: half."""


def share(work: Work, account_id: str, model: str) -> Share:
    """What batches with this model wrote of what they could: the account's own, else everybody's, else half."""
    return _share(work, model, account_id) or _share(work, model, None) or DEFAULT


def _share(work: Work, model: str, account_id: str | None) -> Share | None:
    """From completed batches only: of a cancelled one much was never run."""
    rows = (
        select(UsageFact.output_tokens, Hold.amount_nanos, Hold.card, _BATCHES.c.input_tokens_estimate)
        .join(Hold, Hold.batch_id == UsageFact.batch_id)
        .join(_BATCHES, _BATCHES.c.id == UsageFact.batch_id)
        .where(UsageFact.model == model, _BATCHES.c.status == "completed", Hold.amount_nanos > 0)
        .order_by(UsageFact.day.desc())
        .limit(BATCHES_LOOKED_AT)
    )
    if account_id is not None:
        rows = rows.where(UsageFact.account_id == account_id)
    written = possible = 0
    for output_tokens, hold_nanos, card, input_tokens in work.session.execute(rows):
        price = card["output_price_nanos"]
        if price:
            written += output_tokens
            # What was held beyond the prompts is what the answers could cost at most.
            possible += (hold_nanos - (input_tokens or 0) * card["input_price_nanos"]) // price
    if possible <= 0:
        return None
    return Share(written, possible, "platform" if account_id is None else "account")
