"""Batches with all that is known of them, whatever the dialect says: what the dashboard and the command read."""

from typing import Any

from flask import Blueprint

from api import auth, queries
from api.batches import checked_id, page_of_batches
from api.reference.operations import operation
from gridline.batches import reading
from gridline.db.work import reading as reading_only

blueprint = queries.strict(auth.guard(Blueprint("explained", __name__)))


@blueprint.get("/batches")
@operation(
    "Account",
    "listExplainedBatches",
    "List batches with all that is known of them",
    parameters=("batches_after", "batches_limit"),
    returns="ExplainedBatchList",
    refuses=("not_found",),
)
def list_batches() -> dict[str, Any]:
    """One page of the account's batches, newest first: the same objects in every dialect."""
    return page_of_batches(explained=True)


@blueprint.get("/batches/<batch_id>")
@operation(
    "Account",
    "explainBatch",
    "Look at all that is known of a batch",
    returns="ExplainedBatch",
    refuses=("not_found",),
)
def show_batch(batch_id: str) -> dict[str, Any]:
    """One batch with why it waits, what helps, and what it costs: the same object in every dialect."""
    checked_id(batch_id)
    with reading_only() as work:
        return reading.show(work, account_id=auth.caller().account_id, batch_id=batch_id, explained=True)
