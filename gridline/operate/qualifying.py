"""Qualification: a real run of known prompts on the model's engine, judged and measured, then put on record.

A model is listed once its newest run passed. Knows the engine's HTTP side and the catalogue, no batch.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx

from gridline.catalog.cards import ModelCard, catalogue, record_qualification
from gridline.db.work import unit_of_work
from gridline.errors import NotFound, Unavailable
from gridline.operate.engines import Engine, ready_engine
from gridline.settings import Settings

ANSWER_SECONDS_MAX = 120
CAPITAL = "What is the capital of France?"
CAPITAL_ANSWER = "Paris"
SPEED_PROMPTS = 16
SPEED_TOKENS = 24
NORM_ERROR_MAX = 1e-3
SENTENCES = (
    "The cat sat on the mat.",
    "A dog slept by the fire.",
    "Prices rose by two percent in March.",
    "The train to Lyon leaves at noon.",
)


@dataclass(frozen=True)
class Outcome:
    """What a run showed: whether it passed, tokens a second, and what was asked and answered."""

    passed: bool
    tokens_per_second: int
    details: dict[str, Any]


def qualify(config: Settings, model_id: str) -> Outcome:
    """Run the model's known prompts on its engine and record the outcome, passed or not.

    Raises:
        NotFound: the catalogue has no such model.
        Unavailable: its engine did not start, or stopped answering.
    """
    card = catalogue().get(model_id)
    if card is None:
        raise NotFound(f"The catalogue has no model {model_id!r}. See 'gridline models list'.")
    engine = ready_engine(config, card)
    try:
        with _client(engine) as client:
            outcome = _RUNS[card.kind](client, card)
    except httpx.HTTPError as error:
        raise Unavailable(f"The engine of {card.id} stopped answering: {error}") from error
    with unit_of_work() as work:
        record_qualification(
            work,
            card,
            engine_version=engine.version,
            passed=outcome.passed,
            tokens_per_second=outcome.tokens_per_second,
            details=outcome.details,
        )
    return outcome


def _client(engine: Engine) -> httpx.Client:
    base = engine.url.rstrip("/").removesuffix("/v1") + "/v1"
    headers = {"Authorization": f"Bearer {engine.api_key}"}
    return httpx.Client(base_url=base, headers=headers, timeout=ANSWER_SECONDS_MAX)


def _chat(client: httpx.Client, card: ModelCard) -> Outcome:
    def ask(text: str, tokens: int) -> dict[str, Any]:
        body = {
            "model": card.id,
            "messages": [{"role": "user", "content": text}],
            "temperature": 0,
            "max_tokens": tokens,
        }
        return _post(client, "/chat/completions", body)

    first = ask(CAPITAL, 24)
    answer = first["choices"][0]["message"]["content"] or ""
    start = time.monotonic()
    with ThreadPoolExecutor(SPEED_PROMPTS) as crowd:
        answers = list(
            crowd.map(lambda n: ask(f"Count to ten, starting at {n}.", SPEED_TOKENS), range(SPEED_PROMPTS))
        )
    seconds = time.monotonic() - start
    tokens = sum(one["usage"]["completion_tokens"] for one in answers)
    return Outcome(
        passed=CAPITAL_ANSWER.lower() in answer.lower() and tokens > 0,
        tokens_per_second=int(tokens / seconds),
        details={
            "prompt": CAPITAL,
            "answer": answer,
            "usage": first["usage"],
            "requests_at_once": SPEED_PROMPTS,
        },
    )


def _embedding(client: httpx.Client, card: ModelCard) -> Outcome:
    start = time.monotonic()
    answer = _post(client, "/embeddings", {"model": card.id, "input": list(SENTENCES)})
    seconds = time.monotonic() - start
    vectors = [one["embedding"] for one in answer["data"]]
    norms = [math.sqrt(sum(value * value for value in vector)) for vector in vectors]
    sizes = sorted({len(vector) for vector in vectors})
    right = len(vectors) == len(SENTENCES) and sizes == [card.dimensions]
    return Outcome(
        passed=right and all(abs(norm - 1) <= NORM_ERROR_MAX for norm in norms),
        tokens_per_second=int(answer["usage"]["prompt_tokens"] / seconds),
        details={"inputs": list(SENTENCES), "dimensions": sizes, "norms": norms, "usage": answer["usage"]},
    )


def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(path, json=body)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


_RUNS: dict[str, Callable[[httpx.Client, ModelCard], Outcome]] = {"chat": _chat, "embedding": _embedding}
