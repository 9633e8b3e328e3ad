import json
from pathlib import Path
from typing import Any

import pytest

from gpu_jobs import process_groups
from gridline.lines.tokens import model_tokens
from gridline.settings import settings
from tests.gpu_jobs.conftest import Partition
from tests.gpu_jobs.real_engine import real_keeper, run_bodies

PARIS = "What is the capital of France?"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}},
    "required": ["city"],
    "additionalProperties": False,
}
BODIES: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": PARIS}], "temperature": 0, "max_tokens": 64},
    {"messages": [{"role": "user", "content": "one two three " * 4000}], "max_tokens": 64},
    {
        "messages": [{"role": "user", "content": PARIS}],
        "max_tokens": 64,
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}},
    },
    {
        "messages": [{"role": "user", "content": PARIS}],
        "max_tokens": 2,
        "n": 2,
        "logprobs": True,
        "top_logprobs": 2,
    },
]


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_packaged_models_answer(short_path: Path) -> None:
    """Prepared from their packages, both models answer through keeper and job, and nothing lives on afterwards."""
    with real_keeper(short_path) as python:
        chat = run_bodies(short_path, python, "smollm2-135m-instruct", BODIES)
        embedding = run_bodies(
            short_path, python, "all-minilm-l6-v2", [{"input": ["Paris", "the capital of France", "tax"]}]
        )
        groups = [
            json.loads(path.read_text())["group"] for path in (short_path / "run" / "engines").glob("*.json")
        ]
        assert len(groups) == 2
        assert all(process_groups.members(group) for group in groups)
    assert [process_groups.members(group) for group in groups] == [{}, {}]
    assert PARIS not in "".join(path.read_text() for path in (short_path / "logs").iterdir())
    _check_chat(chat)
    _check_embedding(embedding)


def _check_chat(chat: Partition) -> None:
    rows, bodies = chat.rows(), [json.loads(row.body) for row in chat.rows()]
    assert [row.code for row in rows] == [None, "context_length_exceeded", None, None], bodies
    assert bodies[0]["choices"][0]["message"]["content"] == "The capital of France is Paris."
    assert (rows[0].input_tokens, rows[0].output_tokens) == (37, 8)
    # What validation counts, and the hold is made of, is what the engine bills.
    tokens = model_tokens(settings().models_folder / "smollm2-135m-instruct")
    assert tokens.count_prompts([tokens.prompt(BODIES[0]["messages"])]) == [37]
    assert "city" in json.loads(bodies[2]["choices"][0]["message"]["content"])
    choices = bodies[3]["choices"]
    assert [len(choice["logprobs"]["content"]) for choice in choices] == [2, 2]
    assert all(len(one["top_logprobs"]) == 2 for one in choices[0]["logprobs"]["content"])
    assert {tuple(body) for body in (bodies[0], bodies[2], bodies[3])} == {
        ("id", "object", "created", "model", "choices", "usage")
    }
    assert chat.progress()["engine_version"]


def _check_embedding(embedding: Partition) -> None:
    (row,) = embedding.rows()
    paris, capital, tax = (one["embedding"] for one in json.loads(row.body)["data"])
    assert len(paris) == 384
    assert _product(paris, paris) == pytest.approx(1, abs=1e-4)
    assert _product(paris, capital) > _product(paris, tax)
    assert row.output_tokens == 0


def _product(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
