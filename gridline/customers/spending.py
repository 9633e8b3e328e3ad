"""What an account's batches may hold in a period: the operator's daily limit, the owner's monthly budget. Knows no batch.

A period's use is what was held in it less what came back of that, so a batch that cost little gives most of its hold
back. Credit that is added raises neither.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gridline.clock import Days, unix
from gridline.customers import accounts
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.errors import LimitExceeded
from gridline.ledger import reading
from gridline.money import credits_text


@dataclass(frozen=True)
class Rule:
    """A kind of limit: what it is called, what it counts, and what helps where it is reached."""

    name: str
    told: str
    now: str
    helps: str


DAILY = Rule(
    "daily_credits",
    "that its batches may hold in a UTC day",
    "today",
    "or write to the operator {of} to ask for a higher limit; adding credit does not raise it",
)
BUDGET = Rule(
    "monthly_budget",
    "that its owner lets it spend in a UTC month",
    "this month",
    "or have the account's owner raise the budget on the dashboard's page Account; adding credit does not raise it",
)


@dataclass(frozen=True)
class Spending:
    """A limit of a period and its use by now, in nano-credits."""

    rule: Rule
    limit_nanos: int
    used_nanos: int
    resets_at: datetime
    """The first instant after the period: 00:00 UTC of the next day, or of the next month's first."""

    @property
    def left_nanos(self) -> int:
        """What a batch may still hold."""
        return max(0, self.limit_nanos - self.used_nanos)

    def shown(self) -> dict[str, Any]:
        """As the API shows a limit."""
        return {
            "limit": credits_text(self.limit_nanos),
            "current": credits_text(self.used_nanos),
            "resets_at": unix(self.resets_at),
        }

    def met(self) -> dict[str, Any]:
        """As a refusal shows it in ``error.limit``."""
        return {"name": self.rule.name, **self.shown(), "unit": "credits"}

    def told(self) -> str:
        """What is used of what, and until when, in a sentence."""
        return (
            f"Your account has used {credits_text(self.used_nanos)} of the {credits_text(self.limit_nanos)} credits "
            f"{self.rule.told}; the limit resets at {self.resets_at:%Y-%m-%d} 00:00 UTC."
        )


def today(work: Work, account: Account) -> Spending:
    """What the account used of its daily limit."""
    day = Days.of(work.now)
    return Spending(DAILY, account.daily_credits_nanos_max, reading.used_in(work, account.id, day), day.end)


def this_month(work: Work, account: Account) -> Spending | None:
    """What the account used of its monthly budget; None where its owner set none."""
    if account.monthly_budget_nanos is None:
        return None
    first = work.now.date().replace(day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    month = Days(first, last)
    return Spending(BUDGET, account.monthly_budget_nanos, reading.used_in(work, account.id, month), month.end)


def check_create(work: Work, account_id: str) -> None:
    """Go on only while something is left of today's limit and of this month's budget.

    Raises:
        LimitExceeded: the use has reached one; ``limit`` holds both, and when it resets.
    """
    for one in _all(work, account_id):
        if one.used_nanos >= one.limit_nanos:
            helps = one.rule.helps.format(of="with a batch id")
            raise LimitExceeded(
                f"{one.told()} No batch was made and nothing is held. Create it again after the reset, {helps}.",
                limit=one.met(),
            )


def check_hold(work: Work, account_id: str, *, batch_id: str, hold_nanos: int) -> None:
    """Go on only if what is used, with a hold that was just placed in this transaction, is within both limits.

    Called after placing: the hold has locked the account's book of available credit until the transaction ends, so
    holds of one account go one after another, and each sees those before it.

    Raises:
        LimitExceeded: it is not; the caller takes the hold back.
    """
    for one in _all(work, account_id):
        if one.used_nanos <= one.limit_nanos:
            continue
        before = Spending(one.rule, one.limit_nanos, one.used_nanos - hold_nanos, one.resets_at)
        helps = one.rule.helps.format(of=f"and name {batch_id}")
        raise LimitExceeded(
            f"This batch can cost up to {credits_text(hold_nanos)} credits. {before.told()} So "
            f"{credits_text(before.left_nanos)} are left {one.rule.now}. Nothing ran and nothing was charged. Create a smaller batch, "
            f"or this one after the reset, {helps}.",
            limit=before.met(),
        )


def _all(work: Work, account_id: str) -> Iterator[Spending]:
    account = accounts.get(work, account_id)
    yield today(work, account)
    month = this_month(work, account)
    if month is not None:
        yield month
