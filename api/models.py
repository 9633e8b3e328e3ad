"""Models: what can be named in a line, as OpenAI lists them, with limits and prices beside."""

from datetime import datetime
from typing import Any

from flask import Blueprint, current_app

from api import auth, queries
from api.reference.operations import operation
from gridline.catalog import adapters, cards, qualification
from gridline.catalog.adapters import Active
from gridline.catalog.cards import ModelCard
from gridline.clock import unix
from gridline.db.work import Work, reading
from gridline.errors import NotFound
from gridline.lines.adapters import ADAPTER_PREFIX
from gridline.money import credits_text

_MILLION = 1_000_000

blueprint = queries.strict(auth.guard(Blueprint("models", __name__)))


@blueprint.get("/models")
@operation("Models", "listModels", "List models", returns="ModelList")
def list_models() -> dict[str, Any]:
    """Every model that passed qualification and is offered, then the account's own fine-tuned models."""
    with reading() as work:
        own = [_adapter_object(one) for one in adapters.active(work, auth.caller().account_id)]
        return {"object": "list", "data": [*listed_models(work), *own]}


@blueprint.get("/models/<path:model>")
@operation("Models", "retrieveModel", "Look at a model", returns="Model", refuses=("model_not_found",))
def show_model(model: str) -> dict[str, Any]:
    """One model."""
    with reading() as work:
        own = adapters.active(work, auth.caller().account_id) if model.startswith(ADAPTER_PREFIX) else ()
        for one in own:
            if one.row.id == model:
                return _adapter_object(one)
        card = cards.qualified_card(work, model)
        if card is None:
            raise NotFound(f"The model '{model}' does not exist.", code="model_not_found", param="model")
        since = qualification.first_passed(work)
    return _model_object(card, since[card.id, card.commit])


def listed_models(work: Work) -> list[dict[str, Any]]:
    """The objects of all listed models."""
    listed = cards.listed(work)
    # In this order: a model that passes in between is not listed yet, rather than listed without a date.
    since = qualification.first_passed(work)
    return [_model_object(card, since[card.id, card.commit]) for card in listed]


def _model_object(card: ModelCard, listed_since: datetime) -> dict[str, Any]:
    return {
        "id": card.id,
        "object": "model",
        "created": unix(listed_since),
        "owned_by": card.repository.partition("/")[0],
        current_app.config["PROFILE"].extension: _details(card),
    }


def _adapter_object(one: Active) -> dict[str, Any]:
    """A fine-tuned model: what its base is, and what is its own."""
    own = {"base": one.base.id, "rank": one.row.rank, "note": adapters.note(one.row)}
    return {
        "id": one.row.id,
        "object": "model",
        "created": unix(one.row.created_at),
        "owned_by": one.row.account_id,
        current_app.config["PROFILE"].extension: {**_details(one.base), "adapter": own},
    }


def _details(card: ModelCard) -> dict[str, Any]:
    return {
        "kind": card.kind,
        "endpoints": list(card.endpoints),
        "context_tokens": card.context_tokens,
        "output_tokens_max": card.output_tokens_max,
        "dimensions": card.dimensions,
        "repository": card.repository,
        "commit": card.commit,
        "licence": card.licence,
        "prices": {
            "input": _price(card.input_price_nanos),
            "output": _price(card.output_price_nanos),
        },
        "adapter": None,
    }


def _price(nanos: int) -> dict[str, Any]:
    return {"credits_per_million_tokens": credits_text(nanos * _MILLION), "nanos_per_token": nanos}
