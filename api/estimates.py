"""What a batch would cost, before it is made. OpenAI lacks it; the rules and the counting are those of validation."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import Any

from flask import Blueprint, current_app

from api import auth, bodies, queries, rates
from api.reference.operations import operation
from gridline import limits, storage
from gridline.batches import intake
from gridline.batches.requests import ESTIMATE_KEYS, parse_estimate
from gridline.catalog import offering
from gridline.db.work import reading
from gridline.errors import NotFound, Unavailable
from gridline.lines.estimating import Guess, guess_file
from gridline.settings import settings
from gridline.storage.errors import ObjectMissing
from gridline.usage.estimating import estimate_object

blueprint = queries.strict(auth.guard(Blueprint("estimates", __name__)))
_TURN = Lock()
"""One estimate at a time in a process: each takes up to two seconds of it, and polls go on beside."""
_PLACES = BoundedSemaphore(limits.ESTIMATES_AT_ONCE_MAX)
"""With those that wait for their turn: they take no more of the threads that answer polls."""


@blueprint.post("/estimates")
@operation(
    "Credits",
    "createEstimate",
    "Estimate a batch",
    body="EstimateCreate",
    returns="Estimate",
    refuses=("string_above_max_length", "not_found"),
)
def create_estimate() -> dict[str, Any]:
    """What a batch of this file would cost at most and likely, or what is wrong with its lines. Makes and holds nothing."""
    account_id = auth.caller().account_id
    wanted = parse_estimate(bodies.json_body(), current_app.config["PROFILE"])
    rates.admit_estimate(account_id)
    guess = _guess(account_id, wanted.input_file_id, wanted.endpoint)
    with reading() as work:
        numbers = estimate_object(work, account_id, guess)
    asked = {key: getattr(wanted, key) for key in ESTIMATE_KEYS}
    return {"object": "gridline.estimate", **asked, **numbers}


def _guess(account_id: str, file_id: str, endpoint: str) -> Guess:
    with reading() as work:
        file = intake.input_file(work, account_id, file_id)
        rules = offering.rules(work, account_id, endpoint)
    try:
        with _turn():
            return guess_file(
                storage.store(),
                rules,
                file_key=file.object_key,
                file_bytes=file.bytes,
                models_folder=settings().models_folder,
            )
    except ObjectMissing:
        # Deleted since it was looked up.
        raise NotFound(
            f"No such File object: {file_id}. Upload it again and use the new id.", param="input_file_id"
        ) from None


@contextmanager
def _turn() -> Iterator[None]:
    """Wait for one's turn.

    Raises:
        Unavailable: enough others wait already.
    """
    if not _PLACES.acquire(blocking=False):
        raise Unavailable("Many estimates are being made. Try again in a moment.")
    try:
        with _TURN:
            yield
    finally:
        _PLACES.release()
