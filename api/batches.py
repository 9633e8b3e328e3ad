"""Batches: create, list, look, cancel. OpenAI's shapes; the rules are in gridline.batches."""

from typing import Any

from flask import Blueprint, current_app, request

from api import auth, bodies, paging
from gridline import ids, limits
from gridline.batches import cancelling, intake, reading
from gridline.batches.requests import parse_create
from gridline.db.work import unit_of_work
from gridline.errors import InvalidRequest, NotFound
from gridline.telemetry import metrics

blueprint = auth.guard(Blueprint("batches", __name__))


@blueprint.post("/batches")
def create_batch() -> dict[str, Any]:
    """Accept a batch; the same Idempotency-Key and body get the same batch."""
    who = auth.caller()
    wanted = parse_create(bodies.json_body(), current_app.config["PROFILE"])
    key = _idempotency_key()
    with unit_of_work() as work:
        batch = intake.create(
            work, account_id=who.account_id, actor=who.actor, request=wanted, idempotency_key=key
        )
        shown = reading.batch_object(work, batch)
    metrics.BATCHES_CREATED.labels(wanted.endpoint, wanted.completion_window).inc()
    return shown


@blueprint.get("/batches")
def list_batches() -> dict[str, Any]:
    """One page of the account's batches, newest first."""
    limit = paging.query_limit(default=limits.BATCHES_PAGE_DEFAULT, most=limits.BATCHES_PAGE_MAX)
    after = paging.query("after")
    if after is not None:
        checked_id(after, param="after")
    with unit_of_work() as work:
        data, has_more = reading.page(work, account_id=auth.caller().account_id, after=after, limit=limit)
    return paging.page_object(data, has_more=has_more)


@blueprint.get("/batches/<batch_id>")
def show_batch(batch_id: str) -> dict[str, Any]:
    """One batch."""
    checked_id(batch_id)
    with unit_of_work() as work:
        batch = reading.get(work, account_id=auth.caller().account_id, batch_id=batch_id)
        return reading.batch_object(work, batch)


@blueprint.post("/batches/<batch_id>/cancel")
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
