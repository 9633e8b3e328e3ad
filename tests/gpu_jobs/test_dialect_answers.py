"""Answers of the endpoints that the second dialect adds, from the shapes that the engine gives them."""

import json
from typing import Any

import pytest
from anthropic.types import Message
from openai.types.responses import Response

from gpu_jobs.answers import Answerer, AnswerUnusable
from gpu_jobs.pacing import weight
from gpu_jobs.partition import Line, Spec
from gridline.lines.results import tokens_of
from gridline.lines.segments import ResultRow

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
RESPONSE: dict[str, Any] = {
    "id": "resp_engine",
    "created_at": 1700000000,
    "incomplete_details": None,
    "instructions": "Be brief.",
    "metadata": None,
    "model": "/models/m",
    "object": "response",
    "output": [
        {
            "id": "msg_engine",
            "content": [{"annotations": [], "text": "hi", "type": "output_text", "logprobs": None}],
            "role": "assistant",
            "status": "completed",
            "type": "message",
            "phase": None,
        }
    ],
    "parallel_tool_calls": True,
    "temperature": 0.5,
    "tool_choice": "none",
    "tools": [],
    "top_p": 1.0,
    "background": False,
    "max_output_tokens": 8,
    "service_tier": "auto",
    "status": "completed",
    "top_logprobs": None,
    "truncation": "disabled",
    "usage": {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0, "input_tokens_per_turn": []},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0, "tool_output_tokens": 0},
        "total_tokens": 7,
    },
    "metrics": None,
    "kv_transfer_params": None,
    "input_messages": None,
}
MESSAGE: dict[str, Any] = {
    "id": "chatcmpl-engine",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "hi"}],
    "model": "/models/m",
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 4},
}


def answered(endpoint: str, answer: dict[str, Any], **body: Any) -> ResultRow:
    """The row of an engine's answer to a line of an endpoint."""
    line = Line(5, "c", json.dumps({"model": "m", **body}), 3)
    return Answerer(Spec("batch_1", 0, endpoint, {"id": "m"}, "", 600)).delivered(
        line, json.dumps(answer).encode()
    )


def response(answer: dict[str, Any] = RESPONSE, **body: Any) -> ResultRow:
    """The row of a response."""
    return answered("/v1/responses", answer, **{"max_output_tokens": 8, "store": False, **body})


def message(answer: dict[str, Any] = MESSAGE) -> ResultRow:
    """The row of a message."""
    return answered("/v1/messages", answer, max_tokens=8)


def test_a_response_holds_openais_keys_only() -> None:
    """It carries our ids, what it was asked with, the model asked for, and none of the engine's own keys."""
    row = response(instructions="Be brief.", metadata={"a": "b"}, user="u")
    name = row.request_id.removeprefix("req_")
    assert json.loads(row.body) == {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "m",
        "output": [
            {
                "id": f"msg_{name}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "hi"}],
            }
        ],
        "usage": {
            "input_tokens": 3,
            "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 7,
        },
        "instructions": "Be brief.",
        "max_output_tokens": 8,
        "temperature": 0.5,
        "top_p": 1.0,
        "text": {"format": {"type": "text"}},
        "metadata": {"a": "b"},
        "user": "u",
        "truncation": "disabled",
        "reasoning": {"effort": None, "summary": None},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "background": False,
        "store": False,
        "previous_response_id": None,
    }
    assert (row.status_code, row.code, row.input_tokens, row.output_tokens) == (200, None, 3, 4)


def test_the_sdk_reads_a_response() -> None:
    """OpenAI's own type takes the body strictly, and finds the text."""
    form = {"type": "json_object"}
    item = RESPONSE["output"][0] | {"content": [{"type": "output_text", "text": "{}"}]}
    row = response(
        RESPONSE | {"output": [item]}, instructions="x", text={"format": form}, metadata={"a": "b"}
    )
    assert Response.model_validate_json(row.body).output_text == "{}"


def test_a_response_that_was_cut_says_so() -> None:
    """Stopped at what it might write: incomplete, with the reason, also when nothing was written."""
    body = json.loads(response(RESPONSE | {"status": "incomplete", "output": []}).body)
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert (body["output"][0]["status"], body["output"][0]["content"][0]["text"]) == ("incomplete", "")


@pytest.mark.parametrize(
    ("form", "text", "status", "code"),
    [
        ({"type": "json_object"}, '{"a": 1}', "completed", None),
        ({"type": "json_object"}, "[1]", "completed", "structured_output_invalid"),
        ({"type": "json_object"}, '{"a": ', "incomplete", None),
        ({"type": "json_schema", "name": "s", "schema": SCHEMA}, '{"n": 1}', "completed", None),
        (
            {"type": "json_schema", "name": "s", "schema": SCHEMA},
            '{"n": "1"}',
            "completed",
            "structured_output_invalid",
        ),
    ],
)
def test_structured_responses(form: dict[str, Any], text: str, status: str, code: str | None) -> None:
    """As with chat: stopped by itself but not the JSON asked for is an error line and free, cut short is delivered."""
    item = RESPONSE["output"][0] | {"content": [{"type": "output_text", "text": text}]}
    row = response(RESPONSE | {"status": status, "output": [item]}, text={"format": form})
    assert (row.code, row.input_tokens) == (code, 0 if code else 3)


def test_a_message_holds_anthropics_keys_only() -> None:
    """It carries our id, the model asked for, and Anthropic's usage; what the engine's cache held is input like the rest."""
    usage = {"input_tokens": 1, "output_tokens": 4, "cache_read_input_tokens": 2}
    row = message(MESSAGE | {"usage": usage})
    assert json.loads(row.body) == {
        "id": "msg_" + row.request_id.removeprefix("req_"),
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 4,
        },
    }
    assert (row.status_code, row.code, row.input_tokens, row.output_tokens) == (200, None, 3, 4)


def test_anthropics_sdk_reads_a_message() -> None:
    """Its own type takes the body strictly: text, what stopped it, and what was used."""
    for change in (
        {},
        {"stop_reason": "max_tokens"},
        {"stop_reason": "stop_sequence", "stop_sequence": "END"},
    ):
        row = message(MESSAGE | change)
        read = Message.model_validate_json(row.body, strict=True)
        assert read.stop_reason == change.get("stop_reason", "end_turn")
        assert [block.text for block in read.content if block.type == "text"] == ["hi"]
        assert (read.usage.input_tokens, read.usage.output_tokens) == (row.input_tokens, row.output_tokens)


def test_a_message_says_what_stopped_it() -> None:
    """The stop sequence that was met is named."""
    body = json.loads(message(MESSAGE | {"stop_reason": "stop_sequence", "stop_sequence": "END"}).body)
    assert (body["stop_reason"], body["stop_sequence"]) == ("stop_sequence", "END")


@pytest.mark.parametrize(
    "change",
    [
        {"status": "cancelled"},
        {"output": [{"type": "reasoning", "content": []}]},
        {"output": None},
        {"usage": None},
        {"usage": RESPONSE["usage"] | {"total_tokens": 8}},
        {"usage": RESPONSE["usage"] | {"output_tokens": -1}},
        {"usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    ],
)
def test_unusable_responses(change: dict[str, Any]) -> None:
    """A response that lacks what the endpoint promises is never delivered."""
    with pytest.raises(AnswerUnusable):
        response(RESPONSE | change)


@pytest.mark.parametrize(
    "change",
    [
        {"stop_reason": None},
        {"stop_reason": "tool_use"},
        {"content": [{"type": "tool_use", "id": "x"}]},
        {"usage": {"input_tokens": 1.5, "output_tokens": 4}},
        {"usage": {"input_tokens": 3}},
    ],
)
def test_unusable_messages(change: dict[str, Any]) -> None:
    """A message that lacks what the endpoint promises is never delivered."""
    with pytest.raises(AnswerUnusable):
        message(MESSAGE | change)


@pytest.mark.parametrize("row", [response(), message()])
def test_what_is_billed_stands_in_the_body(row: ResultRow) -> None:
    """The row's tokens can be read back from the usage of the delivered line."""
    assert tokens_of(json.loads(row.body)["usage"]) == (row.input_tokens, row.output_tokens)


def test_a_response_weighs_what_it_may_write() -> None:
    """Its bound counts as chat's does, and an embeddings line writes nothing."""
    assert weight({"input": "x", "max_output_tokens": 100}, 5) == weight(
        {"messages": [], "max_tokens": 100}, 5
    )
    assert weight({"input": "x"}, 5) == 5
