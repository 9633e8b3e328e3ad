"""Models: what can be named in a line, as OpenAI lists them, with limits and prices beside."""

from datetime import datetime
from typing import Any

from flask import Blueprint, current_app

from api import auth, queries
from api.reference.operations import operation
from gridline.catalog import cards, qualification
from gridline.catalog.cards import ModelCard
from gridline.clock import unix
from gridline.db.work import Work, reading
from gridline.errors import NotFound
from gridline.money import credits_text

_MILLION = 1_000_000

blueprint = queries.strict(auth.guard(Blueprint("models", __name__)))


@blueprint.get("/models")
@operation("Models", "listModels", "List models", returns="ModelList")
def list_models() -> dict[str, Any]:
    """Every model that passed qualification and is offered."""
    with reading() as work:
        return {"object": "list", "data": listed_models(work)}


@blueprint.get("/models/<path:model>")
@operation("Models", "retrieveModel", "Look at a model", returns="Model", refuses=("model_not_found",))
def show_model(model: str) -> dict[str, Any]:
    """One model."""
    with reading() as work:
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
        current_app.config["PROFILE"].extension: {
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
        },
    }


def _price(nanos: int) -> dict[str, Any]:
    return {"credits_per_million_tokens": credits_text(nanos * _MILLION), "nanos_per_token": nanos}
