"""What somebody who has just signed in wants to know: read in one go, and the first steps of a new account. Pure but for load."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard import figures, months
from gridline.client import Account, Batch, Client
from gridline.money import credits_nanos

READ_BATCHES = 100
SHOWN_ACTIVE = 10
SHOWN_TROUBLED = 5


@dataclass(frozen=True)
class Step:
    """One thing that a new customer does, and whether it is done."""

    title: str
    done: bool
    told: str


@dataclass(frozen=True)
class Overview:
    """What the page shows; ``active`` and ``troubled`` are among the newest READ_BATCHES, newest first."""

    account: Account
    spent_nanos: int
    active: tuple[Batch, ...]
    troubled: tuple[Batch, ...]
    steps: tuple[Step, ...]

    @property
    def begun(self) -> bool:
        """Whether every first step is done."""
        return all(step.done for step in self.steps)


def load(client: Client, *, with_token: bool) -> Overview:
    """Read the account, its newest batches and this UTC month's charges.

    ``with_token``: the visitor signed in with a token, so there is one; a user's are asked for.
    """
    account = client.account()
    batches = client.batches(limit=READ_BATCHES).data
    used = client.usage(months.days(f"{figures.now():%Y-%m}"))
    return Overview(
        account,
        sum(credits_nanos(one["amount"]) for one in used),
        tuple(one for one in batches if not one.ended),
        tuple(one for one in batches if trouble(one)),
        steps(account, batches, has_token=with_token or bool(batches) or bool(client.tokens())),
    )


def steps(account: Account, batches: Sequence[Batch], *, has_token: bool) -> tuple[Step, ...]:
    """The way to a first result; who has a batch has been through all but the last."""
    funded = account.available_nanos + account.held_nanos > 0 or any(one.hold_nanos for one in batches)
    return (
        Step("Make an API token", has_token, "Your programs sign in with it. It is shown once."),
        Step("Have credit", funded, "A batch holds the most that it can cost before it runs. Ask the operator for some."),
        Step("Send a batch", bool(batches), "From a program with the OpenAI SDK, or from this page with a file."),
    )  # fmt: skip


def trouble(batch: Batch) -> str:
    """What went wrong in a batch that has ended, in a sentence; "" where nothing did."""
    counts = batch.counts
    if batch.status == "failed":
        problems = len(batch.errors)
        more = f" And {figures.count(problems - 1, 'further problem')}." if problems > 1 else ""
        return f"{batch.errors[0].message}{more}" if batch.errors else "It failed before any line ran."
    if batch.status == "expired":
        return f"The completion window passed: {counts.completed:,} of {counts.total:,} lines were done."
    if batch.status == "completed" and counts.failed:
        return f"{counts.failed:,} of {counts.total:,} lines failed: the batch's page groups them by what mends them."
    return ""
