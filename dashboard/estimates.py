"""What an estimate tells before a batch is made: its cost beside the credit, and what speaks against it. Pure."""

from dataclasses import dataclass

from dashboard import figures
from gridline.client import Json, LineError
from gridline.money import credits_nanos


@dataclass(frozen=True)
class Objection:
    """Why a batch of this file would fail or wait; ``final`` when to create it now helps nobody."""

    title: str
    text: str
    final: bool


def errors(estimate: Json) -> tuple[LineError, ...]:
    """The wrong lines that are listed."""
    return tuple(LineError.from_json(one) for one in (estimate.get("errors") or {}).get("data", ()))


def numbers(estimate: Json) -> list[tuple[str, str, str]]:
    """Names, amounts and what they mean; empty for a file with wrong lines, which costs nothing."""
    if estimate["ceiling"] is None:
        return []
    ceiling, available = credits_nanos(estimate["ceiling"]), credits_nanos(estimate["available"])
    likely = estimate.get("likely")
    return [
        ("Lines", f"{estimate['lines']:,}", f"All for {estimate['model']}."),
        (
            "At most (credits)", figures.number(ceiling),
            "Held when the batch starts. Only delivered lines are charged; the rest returns. " + figures.UNIT_HELP,
        ),
        ("Likely (credits)", figures.trimmed(likely) if likely else "not known yet", "From how long earlier answers were."),
        ("Available after the hold", figures.number(available - ceiling), "What other batches can use meanwhile."),
    ]  # fmt: skip


def objection(estimate: Json, window: str) -> Objection | None:
    """What stands against creating it now; None when nothing does."""
    wrong = estimate.get("errors")
    if wrong:
        found = figures.count(wrong["total"], "problem")
        return Objection(
            f"{found} in the file",
            "A batch of it would fail. Correct these lines and upload it again.",
            final=True,
        )
    if estimate["within_daily_limit"] is False:
        return Objection(
            "More than your account may use today",
            "The most that it can cost is over what is left of the day's credits. Wait until 00:00 UTC, send a "
            "smaller file, or ask the operator for a higher limit. Adding credit does not help.",
            final=True,
        )
    if estimate["within_monthly_budget"] is False:
        return Objection(
            "More than your budget of this month",
            "The most that it can cost is over what is left of the account's monthly budget. Raise the budget on the page "
            "Account, send a smaller file, or wait for the next month. Adding credit does not help.",
            final=True,
        )
    if estimate["covered"] is False and window == "24h":
        return Objection(
            "Your available credits do not cover it",
            "A 24h batch would fail at once. Add credit, lower max_tokens, send fewer lines, or choose a window that waits "
            "for credit, if there is one.",
            final=True,
        )
    if estimate["covered"] is False:
        return Objection(
            "Your available credits do not cover it yet",
            "The batch will wait for credit for up to 48 hours, then fail and cost nothing.",
            final=False,
        )
    return None
