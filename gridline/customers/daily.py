"""An account's daily limit: what its batches may hold in a UTC day. Knows no batch but by its id.

A day's use is what was held that day less what came back of it, so a batch that cost little gives most of its hold
back to the day. Credit that is added does not raise the limit.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gridline.clock import Days, unix
from gridline.customers import accounts
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.errors import LimitExceeded
from gridline.ledger import reading
from gridline.money import credits_text


@dataclass(frozen=True)
class DailyUse:
    """The limit of a UTC day and its use by now, in nano-credits."""

    limit_nanos: int
    used_nanos: int
    resets_at: datetime
    """The next 00:00 UTC."""

    def shown(self) -> dict[str, Any]:
        """As the API shows a limit."""
        return {
            "limit": credits_text(self.limit_nanos),
            "current": credits_text(self.used_nanos),
            "resets_at": unix(self.resets_at),
        }

    def met(self) -> dict[str, Any]:
        """As a refusal shows it in ``error.limit``."""
        return {"name": "daily_credits", **self.shown(), "unit": "credits"}


def use_of(work: Work, account: Account) -> DailyUse:
    """What the account used of its limit today."""
    today = Days.of(work.now)
    return DailyUse(
        limit_nanos=account.daily_credits_nanos_max,
        used_nanos=reading.used_in(work, account.id, today),
        resets_at=today.end,
    )


def check_create(work: Work, account_id: str) -> None:
    """Go on only while something of today's limit is left.

    Raises:
        LimitExceeded: the use has reached the limit; ``limit`` holds both, and when it resets.
    """
    use = use_of(work, accounts.get(work, account_id))
    if use.used_nanos < use.limit_nanos:
        return
    raise LimitExceeded(
        f"{_told(use)} No batch was made and nothing is held. Create it again after the reset, or write to the "
        "operator with a batch id to ask for a higher limit; adding credit does not raise it.",
        limit=use.met(),
    )


def check_hold(work: Work, account_id: str, *, batch_id: str, hold_nanos: int) -> None:
    """Go on only if today's use, with a hold that was just placed in this transaction, is within the limit.

    Called after placing: the hold has locked the account's book of available credit until the transaction ends, so
    holds of one account go one after another, and each sees those before it.

    Raises:
        LimitExceeded: it is not; the caller takes the hold back.
    """
    use = use_of(work, accounts.get(work, account_id))
    if use.used_nanos <= use.limit_nanos:
        return
    before = DailyUse(use.limit_nanos, use.used_nanos - hold_nanos, use.resets_at)
    left = max(0, before.limit_nanos - before.used_nanos)
    raise LimitExceeded(
        f"This batch can cost up to {credits_text(hold_nanos)} credits. {_told(before)} So {credits_text(left)} are "
        "left today. Nothing ran and nothing was charged. Create a smaller batch, or this one after the reset, or write "
        f"to the operator and name {batch_id} to ask for a higher limit; adding credit does not raise it.",
        limit=before.met(),
    )


def _told(use: DailyUse) -> str:
    return (
        f"Your account has used {credits_text(use.used_nanos)} of the {credits_text(use.limit_nanos)} credits that its "
        f"batches may hold in a UTC day; the limit resets at {use.resets_at:%Y-%m-%d} 00:00 UTC."
    )
