"""The request log over HTTP: what became of each line of ended batches, by batch or by day. Never a prompt or an answer."""

from typing import Any

from flask import Blueprint

from api import auth, paging, queries
from api.batches import checked_id
from api.reference.operations import operation
from gridline import limits
from gridline.batches import reading as batches
from gridline.clock import Days
from gridline.db.work import reading
from gridline.errors import InvalidRequest
from gridline.usage import request_log

blueprint = queries.strict(auth.guard(Blueprint("request_log", __name__)))


@blueprint.get("/requests")
@operation(
    "Credits",
    "listRequests",
    "List requests",
    parameters=("requests_batch", "requests_day", "requests_after", "requests_limit"),
    returns="RequestList",
    refuses=("not_found",),
)
def list_requests() -> dict[str, Any]:
    """One page of the log: of a batch in input order, or of the batches that ended on a UTC day (today's by default)."""
    limit = paging.query_limit(default=limits.REQUESTS_PAGE_DEFAULT, most=limits.REQUESTS_PAGE_MAX)
    after, batch_id = paging.query("after"), paging.query("batch_id")
    account_id = auth.caller().account_id
    day = paging.query_day("day")
    if batch_id is not None and day is not None:
        raise InvalidRequest(
            "Invalid 'day': a batch's requests are all of one day. Give 'batch_id' or 'day', not both.",
            code="invalid_value",
            param="day",
        )
    with reading() as work:
        if batch_id is not None:
            batches.get(work, account_id=account_id, batch_id=checked_id(batch_id))
            found, more = request_log.of_batch(work, account_id, batch_id, after=after, limit=limit)
        else:
            days = Days(day, day) if day else Days.of(work.now)
            found, more = request_log.of_day(work, account_id, days, after=after, limit=limit)
    return paging.page_object([request_log.request_object(one) for one in found], has_more=more)
