"""Qualification: known prompts through the stage that batches run in, judged and measured, then put on record.

A model is listed once its newest run passed. Known prompts are checked as a file's lines are and answered by the real
GPU job; its throughput is asked of the same engine directly, many requests at once. Knows no batch.
"""

import json
import math
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from gridline.catalog.cards import ModelCard, catalogue, record_qualification
from gridline.db.work import unit_of_work
from gridline.errors import NotFound, Unavailable
from gridline.lines import endpoints
from gridline.operate.engines import Engine, ready_engine
from gridline.operate.stage import Stage
from gridline.settings import Settings

ANSWER_SECONDS_MAX = 120
CAPITAL = "What is the capital of France?"
CAPITAL_ANSWER = "Paris"
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}},
    "required": ["city"],
    "additionalProperties": False,
}
CHAT_LINES: tuple[dict[str, Any], ...] = (
    {"messages": [{"role": "user", "content": CAPITAL}], "max_tokens": 24},
    {
        "messages": [{"role": "user", "content": f"{CAPITAL} Answer as JSON."}],
        "max_tokens": 48,
        "response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}},
    },
)
"""The first must name the capital; each must be delivered, which holds the second to its schema."""
SPEED_PROMPTS = 16
SPEED_TOKENS = 24
NORM_ERROR_MAX = 1e-3
NUMBERS_KEPT = 8
"""Of each vector so many numbers go on record: enough to see whether a later run answers the same."""
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
    # What the engine serves is known by these prompts, whichever endpoints this dialect sells.
    card = replace(card, endpoints=endpoints.OF_KIND[card.kind])
    engine = ready_engine(config, card)
    try:
        with _client(engine) as client, tempfile.TemporaryDirectory(prefix="gl-") as folder:
            outcome = _RUNS[card.kind](client, card, Stage(config, card, Path(folder)))
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


def _chat(client: httpx.Client, card: ModelCard, stage: Stage) -> Outcome:
    bodies = [{"model": card.id, "temperature": 0, **one} for one in CHAT_LINES]
    answers = _answered(stage, card, bodies)
    texts = [one["choices"][0]["message"]["content"] if "choices" in one else "" for one in answers]

    def ask(number: int) -> dict[str, Any]:
        message = {"role": "user", "content": f"Count to ten, starting at {number}."}
        body = {"model": card.id, "messages": [message], "temperature": 0, "max_tokens": SPEED_TOKENS}
        return _post(client, "/chat/completions", body)

    start = time.monotonic()
    with ThreadPoolExecutor(SPEED_PROMPTS) as crowd:
        counted = list(crowd.map(ask, range(SPEED_PROMPTS)))
    seconds = time.monotonic() - start
    tokens = sum(one["usage"]["completion_tokens"] for one in counted)
    delivered = all("choices" in one for one in answers)
    return Outcome(
        passed=delivered and CAPITAL_ANSWER.lower() in texts[0].lower() and tokens > 0,
        tokens_per_second=int(tokens / seconds),
        details={
            "lines": [
                {"prompt": body["messages"][-1]["content"], "answer": text, "usage": one.get("usage"), "error": one.get("error")}
                for body, text, one in zip(bodies, texts, answers, strict=True)
            ],
            "counted": [one["choices"][0]["message"]["content"] for one in counted],
            "requests_at_once": SPEED_PROMPTS,
        },
    )  # fmt: skip


def _embedding(client: httpx.Client, card: ModelCard, stage: Stage) -> Outcome:
    bodies: list[dict[str, Any]] = [{"model": card.id, "input": list(SENTENCES)}]
    answer = _answered(stage, card, bodies)[0]
    vectors = [one["embedding"] for one in answer.get("data", ())]
    start = time.monotonic()
    measured = _post(client, "/embeddings", bodies[0])
    seconds = time.monotonic() - start
    norms = [math.sqrt(sum(value * value for value in vector)) for vector in vectors]
    sizes = sorted({len(vector) for vector in vectors})
    right = len(vectors) == len(SENTENCES) and sizes == [card.dimensions]
    return Outcome(
        passed=right and all(abs(norm - 1) <= NORM_ERROR_MAX for norm in norms),
        tokens_per_second=int(measured["usage"]["prompt_tokens"] / seconds),
        details={
            "inputs": list(SENTENCES),
            "dimensions": sizes,
            "norms": norms,
            "vectors_begin": [vector[:NUMBERS_KEPT] for vector in vectors],
            "usage": answer.get("usage"),
            "error": answer.get("error"),
        },
    )


def _answered(stage: Stage, card: ModelCard, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the stage made of each body: an answer, or an object with ``error``."""
    endpoint = card.endpoints[0]
    lines = [
        {"custom_id": f"known-{number}", "method": "POST", "url": endpoint, "body": body}
        for number, body in enumerate(bodies, start=1)
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    rows = stage.run(stage.order(data, endpoint=endpoint))
    return [json.loads(row.body) for row in rows]


def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(path, json=body)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


_RUNS: dict[str, Callable[[httpx.Client, ModelCard, Stage], Outcome]] = {
    "chat": _chat,
    "embedding": _embedding,
}
