"""Batches: create, list, look, cancel. OpenAI's shapes; the rules are in gridline.batches."""

import re
from typing import Any

from flask import Blueprint, Response, current_app, jsonify, request

from api import auth, bodies, paging, queries
from api.reference.operations import operation
from gridline import ids, limits
from gridline.batches import cancelling, intake, reading
from gridline.batches.repeats import Sent
from gridline.batches.requests import parse_create
from gridline.db.work import reading as reading_only
from gridline.db.work import unit_of_work
from gridline.errors import InvalidRequest, NotFound
from gridline.telemetry import metrics

blueprint = queries.strict(auth.guard(Blueprint("batches", __name__)))


@blueprint.post("/batches")
@operation(
    "Batches",
    "createBatch",
    "Create a batch",
    parameters=("idempotency_key", "retry_count"),
    body="BatchCreate",
    returns="Batch",
    refuses=(
        "string_above_max_length",
        "object_above_max_properties",
        "integer_below_min_value",
        "integer_above_max_value",
        "input_expires_too_early",
        "not_found",
        "idempotency_conflict",
        "limit_exceeded",
    ),
    sends=("Idempotency-Replayed",),
)
def create_batch() -> Response:
    """Accept a batch; a create that was sent before gets the batch that it made then."""
    who = auth.caller()
    wanted = parse_create(bodies.json_body(), current_app.config["PROFILE"])
    sent = Sent(
        key=_idempotency_key(),
        token_id=who.token_id,
        user_agent=request.headers.get("User-Agent", ""),
        retry=_is_retry(),
    )
    with unit_of_work() as work:
        created = intake.create(work, account_id=who.account_id, actor=who.actor, request=wanted, sent=sent)
        shown = reading.batch_object(work, created.batch)
    answer = jsonify(shown)
    if created.replayed:
        answer.headers["Idempotency-Replayed"] = "true"
    else:
        metrics.BATCHES_CREATED.labels(wanted.endpoint, wanted.completion_window).inc()
    return answer


@blueprint.get("/batches")
@operation(
    "Batches",
    "listBatches",
    "List batches",
    parameters=("batches_after", "batches_limit"),
    returns="BatchList",
    refuses=("not_found",),
)
def list_batches() -> dict[str, Any]:
    """One page of the account's batches, newest first."""
    return page_of_batches()


def page_of_batches(*, explained: bool = False) -> dict[str, Any]:
    """The page that the query asks for; ``explained``: with all that is known of each batch."""
    limit = paging.query_limit(default=limits.BATCHES_PAGE_DEFAULT, most=limits.BATCHES_PAGE_MAX)
    after = paging.query("after")
    if after is not None:
        checked_id(after, param="after")
    with reading_only() as work:
        data, has_more = reading.page(
            work, account_id=auth.caller().account_id, after=after, limit=limit, explained=explained
        )
    return paging.page_object(data, has_more=has_more)


@blueprint.get("/batches/<batch_id>")
@operation("Batches", "retrieveBatch", "Look at a batch", returns="Batch", refuses=("not_found",))
def show_batch(batch_id: str) -> dict[str, Any]:
    """One batch."""
    checked_id(batch_id)
    with reading_only() as work:
        return reading.show(work, account_id=auth.caller().account_id, batch_id=batch_id)


@blueprint.post("/batches/<batch_id>/cancel")
@operation("Batches", "cancelBatch", "Cancel a batch", returns="Batch", refuses=("not_found", "conflict"))
def cancel_batch(batch_id: str) -> dict[str, Any]:
    """Ask for a batch's end."""
    checked_id(batch_id)
    who = auth.caller()
    with unit_of_work() as work:
        batch = cancelling.cancel(work, account_id=who.account_id, batch_id=batch_id, actor=who.actor)
        return reading.batch_object(work, batch)


def checked_id(batch_id: str, param: str = "batch_id") -> str:
    """The id, if it has an id's shape: other text never reaches the database, which could not hold all of it.

    Raises:
        NotFound: the very answer that a missing batch gets.
    """
    if not ids.is_id("batch", batch_id):
        raise NotFound(f"No batch found with id '{batch_id}'.", param=param)
    return batch_id


def _idempotency_key() -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (1 <= len(key) <= limits.IDEMPOTENCY_KEY_CHARS_MAX and key.isprintable()):
        raise InvalidRequest(
            f"Invalid Idempotency-Key: expected 1 to {limits.IDEMPOTENCY_KEY_CHARS_MAX} printable characters, "
            f"got {len(key)} characters.",
            code="invalid_value",
            param="Idempotency-Key",
        )
    return key


def _is_retry() -> bool:
    """Whether the SDK says that it sent this request before, as both official ones do."""
    count = request.headers.get("X-Stainless-Retry-Count", "")
    return re.fullmatch("0*[1-9][0-9]*", count) is not None
