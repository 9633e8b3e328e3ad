"""Responses and messages on the real engine: answered as chat is, and billed what validation counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from gridline.catalog.cards import catalogue
from gridline.lines import endpoints
from gridline.lines.chat import ChatRequest
from gridline.lines.messages import read_message
from gridline.lines.responses import read_response
from gridline.lines.schema_judge import SchemaJudge
from gridline.lines.segments import ResultRow
from gridline.lines.tokens import model_tokens
from gridline.settings import settings
from tests.gpu_jobs.real_engine import real_keeper, run_bodies

MODEL = "smollm2-135m-instruct"
PARIS = "What is the capital of France?"
SAID = "The capital of France is Paris."
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}},
    "required": ["city"],
    "additionalProperties": False,
}
RESPONSES: list[dict[str, Any]] = [
    {"input": PARIS, "temperature": 0, "max_output_tokens": 64},
    {
        "instructions": "You answer at length.",
        "input": [
            {"role": "user", "content": PARIS},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Paris"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "And of"}, {"type": "input_text", "text": "Italy? Tell its whole history."}]},
        ],
        "max_output_tokens": 2,
        "metadata": {"a": "b"},
    },
    {
        "input": PARIS,
        "max_output_tokens": 64,
        "text": {"format": {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}},
    },
]  # fmt: skip
MESSAGES: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": PARIS}], "temperature": 0, "max_tokens": 64},
    {
        "system": [{"type": "text", "text": "You answer"}, {"type": "text", "text": "at length."}],
        "messages": [
            {"role": "user", "content": PARIS},
            {"role": "assistant", "content": "Paris"},
            {"role": "user", "content": [{"type": "text", "text": "And of Italy? Tell its whole history."}]},
        ],
        "max_tokens": 2,
        "top_k": 5,
    },
    {
        "messages": [{"role": "user", "content": PARIS}],
        "max_tokens": 64,
        "temperature": 0,
        "stop_sequences": [" is"],
    },
]


def sent(requests: list[ChatRequest]) -> list[dict[str, Any]]:
    """What the engine is sent of requests that were read."""
    return [{**one.body, one.most_key: one.max_tokens} for one in requests]


def counted(requests: list[ChatRequest]) -> list[int]:
    """Prompt tokens as validation counts them."""
    tokens = model_tokens(settings().models_folder / MODEL)
    return tokens.count_prompts([tokens.prompt(one.messages) for one in requests])


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_the_engine_answers_both_endpoints(short_path: Path) -> None:
    """Texts, pieces, earlier turns, schemas and stops work, and the usage of each line is what its hold was made of."""
    card = catalogue()[MODEL]
    with SchemaJudge() as judge:
        asked = [read_response({"model": MODEL, **one}, card, judge) for one in RESPONSES]
        told = [read_message({"model": MODEL, **one}, card, judge) for one in MESSAGES]
    with real_keeper(short_path, MODEL) as python:
        responses = run_bodies(short_path, python, MODEL, sent(asked), endpoint=endpoints.RESPONSES).rows()
        messages = run_bodies(short_path, python, MODEL, sent(told), endpoint=endpoints.MESSAGES).rows()
    assert [row.code for row in (*responses, *messages)] == [None] * 6, [row.body for row in responses]
    assert [row.input_tokens for row in responses] == counted(asked)
    assert [row.input_tokens for row in messages] == counted(told)
    _check_responses(responses)
    _check_messages(messages)


def _check_responses(rows: list[ResultRow]) -> None:
    plain, cut, city = (json.loads(row.body) for row in rows)
    assert plain["output"][0]["content"][0]["text"] == SAID
    assert (plain["status"], plain["usage"]["total_tokens"]) == ("completed", 45)
    assert (cut["status"], cut["usage"]["output_tokens"], cut["metadata"]) == ("incomplete", 2, {"a": "b"})
    assert set(json.loads(city["output"][0]["content"][0]["text"])) == {"city"}


def _check_messages(rows: list[ResultRow]) -> None:
    plain, cut, stopped = (json.loads(row.body) for row in rows)
    assert (plain["content"][0]["text"], plain["stop_reason"]) == (SAID, "end_turn")
    assert (plain["usage"]["input_tokens"], plain["usage"]["output_tokens"]) == (37, 8)
    assert (cut["stop_reason"], cut["usage"]["output_tokens"]) == ("max_tokens", 2)
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", " is")
    assert stopped["content"][0]["text"] == "The capital of France"
