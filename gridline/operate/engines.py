"""Asks the engine keeper of this host for engines, over its Unix socket."""

import time
from dataclasses import dataclass
from typing import Any

import httpx

from gridline.catalog.cards import ModelCard
from gridline.errors import Unavailable
from gridline.settings import Settings

ASK_SECONDS = 1.0
START_SECONDS_MAX = 600


@dataclass(frozen=True)
class Engine:
    """A ready engine: where it answers, with which key, and its version."""

    url: str
    api_key: str
    version: str


def wanted(card: ModelCard) -> dict[str, Any]:
    """What the engine keeper needs to know to start this model (the partition's spec says the same)."""
    return {
        "id": card.id,
        "commit": card.commit,
        "dtype": card.dtype,
        "kind": card.kind,
        "context_tokens": card.context_tokens,
        "engine_arguments": list(card.engine_arguments),
        "adapters_by_rank": [list(pair) for pair in card.adapters_by_rank],
    }


def keeper(config: Settings) -> httpx.Client:
    """A client of the engine keeper."""
    return httpx.Client(
        transport=httpx.HTTPTransport(uds=str(config.engines_socket)), base_url="http://engines", timeout=30
    )


def ready_engine(config: Settings, card: ModelCard, *, seconds_max: float = START_SECONDS_MAX) -> Engine:
    """The model's engine, started if need be.

    Raises:
        Unavailable: the engine keeper is away, or the engine failed or was not ready in time.
    """
    until = time.monotonic() + seconds_max
    state = "the engine keeper does not answer"
    with keeper(config) as client:
        while time.monotonic() < until:
            if card.package and not (config.models_folder / card.id).is_dir():
                # The folder appears whole. Asking before would have the engine keeper give up on the model.
                state = "its weights are not prepared yet (gridline models prepare)"
                time.sleep(ASK_SECONDS)
                continue
            try:
                answer = client.post("/engines", json=wanted(card)).json()
            except (httpx.HTTPError, ValueError) as error:
                state = f"the engine keeper does not answer: {error}"
            else:
                if answer["state"] == "ready":
                    return Engine(answer["url"], answer["api_key"], answer["engine_version"])
                state = answer.get("why") or answer["state"]
                if answer["state"] == "failed":
                    break
            time.sleep(ASK_SECONDS)
    raise Unavailable(f"The engine of {card.id} is not ready: {state}.")
