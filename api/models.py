"""Models: what can be named in a line, as OpenAI lists them, with limits and prices beside."""

from typing import Any

from flask import Blueprint, current_app
from sqlalchemy import func, select

from api import auth
from api.reference.operations import operation
from gridline.catalog import cards
from gridline.catalog.cards import ModelCard
from gridline.catalog.tables import Qualification
from gridline.clock import unix
from gridline.db.work import Work, unit_of_work
from gridline.errors import NotFound
from gridline.money import credits_text

_MILLION = 1_000_000

blueprint = auth.guard(Blueprint("models", __name__))


@blueprint.get("/models")
@operation("Models", "listModels", "List models", returns="ModelList")
def list_models() -> dict[str, Any]:
    """Every model that passed qualification and is offered."""
    with unit_of_work() as work:
        since = _listed_since(work)
        data = [_model_object(card, since) for card in cards.listed(work)]
    return {"object": "list", "data": data}


@blueprint.get("/models/<path:model>")
@operation("Models", "retrieveModel", "Look at a model", returns="Model", refuses=("model_not_found",))
def show_model(model: str) -> dict[str, Any]:
    """One model."""
    with unit_of_work() as work:
        card = cards.qualified_card(work, model)
        if card is None:
            raise NotFound(f"The model '{model}' does not exist.", code="model_not_found", param="model")
        return _model_object(card, _listed_since(work))


def _listed_since(work: Work) -> dict[tuple[str, str], int | None]:
    """When a model first passed at a commit: what OpenAI calls ``created``."""
    first = (
        select(Qualification.model, Qualification.commit, func.min(Qualification.at))
        .where(Qualification.passed)
        .group_by(Qualification.model, Qualification.commit)
    )
    return {(model, commit): unix(at) for model, commit, at in work.session.execute(first)}


def _model_object(card: ModelCard, since: dict[tuple[str, str], int | None]) -> dict[str, Any]:
    return {
        "id": card.id,
        "object": "model",
        "created": since[card.id, card.commit],
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
