"""What OpenAI lacks: the account with its limits and balance, a batch's receipt and its events."""

from typing import Any

from flask import Blueprint

from api import auth, queries
from api.batches import checked_id
from api.reference.operations import operation
from gridline import limits
from gridline.batches import events, reading
from gridline.clock import unix
from gridline.customers import accounts, spending
from gridline.db.work import reading as reading_only
from gridline.ledger import reading as books
from gridline.money import credits_text
from gridline.profiles.profile import current

blueprint = queries.strict(auth.guard(Blueprint("account", __name__)))


@blueprint.get("/account")
@operation("Account", "retrieveAccount", "Look at the account", returns="Account")
def show_account() -> dict[str, Any]:
    """The token's account: limits, what is used of them, credits."""
    account_id = auth.caller().account_id
    with reading_only() as work:
        account = accounts.get(work, account_id)
        balances = books.balance(work, account_id)
        today, month = spending.today(work, account), spending.this_month(work, account)
    return {
        "id": account.id,
        "object": "account",
        "name": account.name,
        "created_at": unix(account.created_at),
        "limits": {
            "open_batches": {"limit": account.open_batches_max, "current": account.open_batches},
            "files": {"limit": limits.ACCOUNT_FILES_MAX, "current": account.files_count},
            "stored_bytes": {"limit": limits.ACCOUNT_STORED_BYTES_MAX, "current": account.files_bytes},
            "leases": {"limit": account.leases_max},
            "daily_credits": today.shown(),
            "monthly_budget": None if month is None else month.shown(),
            "retention_days": {"limit": account.retention_days} if current().retention_by_account else None,
        },
        "balance": {
            "available": credits_text(balances.available_nanos),
            "held": credits_text(balances.held_nanos),
        },
    }


@blueprint.get("/batches/<batch_id>/receipt")
@operation(
    "Account", "retrieveReceipt", "Look at a batch's receipt", returns="Receipt", refuses=("not_found",)
)
def show_receipt(batch_id: str) -> dict[str, Any]:
    """What a batch was charged: lines, tokens, rates, amount."""
    checked_id(batch_id)
    account_id = auth.caller().account_id
    with reading_only() as work:
        reading.get(work, account_id=account_id, batch_id=batch_id)
        return books.receipt(work, batch_id, account_id)


@blueprint.get("/batches/<batch_id>/events")
@operation("Account", "listBatchEvents", "List a batch's events", returns="EventList", refuses=("not_found",))
def list_events(batch_id: str) -> dict[str, Any]:
    """What happened to a batch, oldest first."""
    checked_id(batch_id)
    account_id = auth.caller().account_id
    with reading_only() as work:
        reading.get(work, account_id=account_id, batch_id=batch_id)
        found = events.timeline(work, account_id=account_id, batch_id=batch_id)
        data = [
            {
                "object": "batch.event",
                "sequence": one.sequence,
                "at": unix(one.at),
                "kind": one.kind,
                "actor": one.actor,
                "details": one.details,
            }
            for one in found
        ]
    return {"object": "list", "data": data, "has_more": False}
