"""An account's monthly budget: set and taken away by a signed-in session, so that no token raises its own bounds."""

from typing import Any

from flask import Blueprint

from api import auth, bodies, queries
from api.reference.operations import operation
from gridline import limits
from gridline.customers import budget, spending
from gridline.db.work import unit_of_work
from gridline.errors import InvalidRequest
from gridline.fields import keys_of, text_of
from gridline.money import credits_nanos, credits_text

KEYS = ("limit",)

blueprint = queries.strict(auth.guard_for_users(Blueprint("budget", __name__)))


@blueprint.post("/budget")
@operation("Account", "setBudget", "Set a monthly budget", body="BudgetSet", returns="Budget")
def set_budget() -> dict[str, Any]:
    """Let batches hold no more than so many credits in a UTC month; those that hold credit already go on."""
    return _set(_nanos(keys_of(bodies.json_body(), known=KEYS, required=KEYS)["limit"]))


@blueprint.delete("/budget")
@operation("Account", "removeBudget", "Remove the monthly budget", returns="Budget")
def remove_budget() -> dict[str, Any]:
    """Let batches hold what the account has, within its other limits."""
    return _set(None)


def _set(nanos: int | None) -> dict[str, Any]:
    who = auth.caller()
    with unit_of_work() as work:
        account = budget.set_budget(work, who.account_id, nanos, actor=who.actor)
        month = spending.this_month(work, account)
    return {"object": "gridline.budget", "monthly_budget": None if month is None else month.shown()}


def _nanos(given: object) -> int:
    text = text_of(given, "limit")
    try:
        nanos = credits_nanos(text)
    except ValueError:
        nanos = -1
    if not 0 <= nanos <= limits.BUDGET_NANOS_MAX:
        raise InvalidRequest(
            f"Invalid 'limit': {text[:40]!r} is no amount of 0 to {credits_text(limits.BUDGET_NANOS_MAX)} credits. Write "
            "digits, with at most nine after the point.",
            code="invalid_value",
            param="limit",
        )
    return nanos
