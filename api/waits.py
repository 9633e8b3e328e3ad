"""A batch's waits so far: for what, from when to when. The rules are in gridline.batches."""

from typing import Any

from flask import Blueprint

from api import auth, queries
from api.batches import checked_id
from api.reference.operations import operation
from gridline.batches import events, reading, waits
from gridline.clock import unix
from gridline.db.work import reading as reading_only

blueprint = queries.strict(auth.guard(Blueprint("waits", __name__)))


@blueprint.get("/batches/<batch_id>/waits")
@operation("Account", "listBatchWaits", "List a batch's waits", returns="WaitList", refuses=("not_found",))
def list_waits(batch_id: str) -> dict[str, Any]:
    """What a batch waited for, oldest first; the last one has no end while it lasts."""
    checked_id(batch_id)
    account_id = auth.caller().account_id
    with reading_only() as work:
        reading.get(work, account_id=account_id, batch_id=batch_id)
        found = waits.history(events.timeline(work, account_id=account_id, batch_id=batch_id))
    data = [
        {
            "object": "batch.wait",
            "reason_code": one.code,
            "since": unix(one.since),
            "until": unix(one.until),
        }
        for one in found
    ]
    return {"object": "list", "data": data, "has_more": False}
