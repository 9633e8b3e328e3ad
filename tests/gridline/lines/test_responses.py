"""Responses bodies: the allow-list, OpenAI's ranges, what the engine is sent, and what is counted."""

import json
from typing import Any

import pytest

from gridline.lines.chat import ChatRequest
from gridline.lines.errors import LineRefused
from gridline.lines.partitions import read_ids
from gridline.lines.responses import read_response
from gridline.lines.schema_judge import SchemaJudge
from gridline.lines.segments import read_rows
from gridline.storage import layout
from gridline.storage.objects import Store

from .conftest import BATCH, CARDS, RESPONSES, Check
from .stored_bodies import stored_bodies

CARD = CARDS["tiny-chat"]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 4}}}


def read(judge: SchemaJudge | None = None, **body: Any) -> ChatRequest:
    """Read a body with these keys beside model and input."""
    return read_response({"model": "tiny-chat", "input": "Hi", **body}, CARD, judge or SchemaJudge())


def refusal(**body: Any) -> LineRefused:
    """The refusal of a body."""
    with pytest.raises(LineRefused) as caught:
        read(**body)
    return caught.value


def line(custom_id: str, **body: Any) -> dict[str, Any]:
    """A responses line."""
    values = {"model": "tiny-chat", "input": "Say ok", "max_output_tokens": 8, **body}
    return {"custom_id": custom_id, "method": "POST", "url": RESPONSES, "body": values}


def test_a_text_is_one_message_of_the_users() -> None:
    """A plain input goes to the engine as it is, told not to keep anything; null keys are not sent."""
    request = read(temperature=None, text=None, previous_response_id=None, store=False, background=False)
    assert request.body == {"model": "tiny-chat", "input": "Hi", "store": False}
    assert request.messages == [{"role": "user", "content": "Hi"}]
    assert (request.max_tokens, request.choices, request.most_key) == (None, 1, "max_output_tokens")


def test_instructions_come_first() -> None:
    """What the engine puts before the conversation is counted there too; a developer is a system to it."""
    request = read(
        instructions="Be brief.",
        input=[
            {"role": "developer", "content": "In French."},
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
            },
        ],
    )
    assert request.body["instructions"] == "Be brief."
    assert request.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "In French."},
        {"role": "user", "content": "a\nb"},
    ]
    assert [one["type"] for one in request.body["input"]] == ["message", "message"]


def test_an_earlier_answer_may_be_sent_along() -> None:
    """An output message as a response has it is a message of the conversation; its id and status change nothing."""
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Bonjour", "annotations": [], "logprobs": []}],
    }
    request = read(input=[{"role": "user", "content": "Hi"}, answer, {"role": "user", "content": "Again"}])
    assert request.body["input"][1] == {"type": "message", "role": "assistant", "content": "Bonjour"}


def test_settings_are_passed_on() -> None:
    """What the engine and the answer need of the rest is in the body."""
    given: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 0.9,
        "metadata": {"project": "spring"},
        "user": "customer-7",
        "truncation": "disabled",
    }
    request = read(**given)
    assert {key: request.body[key] for key in given if key != "truncation"} == {
        key: one for key, one in given.items() if key != "truncation"
    }
    assert "truncation" not in request.body


def test_a_schema_is_judged(judge: SchemaJudge) -> None:
    """text.format may ask for JSON by a schema; one that the engine cannot take is refused by its keyword."""
    form = {"type": "json_schema", "name": "one", "schema": SCHEMA, "strict": True, "description": None}
    sent = read(judge, text={"format": form}).body["text"]
    assert sent == {"format": {"type": "json_schema", "name": "one", "schema": SCHEMA, "strict": True}}
    assert read(text={"format": {"type": "json_object"}}).body["text"] == {"format": {"type": "json_object"}}
    assert "text" not in read(text={"format": {"type": "text"}}).body
    with pytest.raises(LineRefused, match="objct"):
        read(judge, text={"format": {**form, "schema": {"type": "objct"}}})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, 1) for key in ("tools", "tool_choice", "reasoning", "include", "prompt", "n", "max_tokens")),
        *((key, 1) for key in ("logit_bias", "service_tier", "messages", "chat_template_kwargs", "priority")),
        ("truncation", "auto"),
        ("max_output_tokens", 0),
        ("max_output_tokens", 1025),
        ("max_output_tokens", "8"),
        ("temperature", 2.1),
        ("top_p", 0),
        ("metadata", {"a": 1}),
        ("metadata", {str(one): "" for one in range(17)}),
        ("metadata", []),
        ("instructions", []),
        ("user", 7),
        ("text", "json"),
        ("input", ""),
        ("input", []),
        ("input", None),
        ("input", 7),
    ],
)
def test_anything_else_is_refused_by_name(key: str, value: object) -> None:
    """Keys outside the list and values outside OpenAI's ranges fail the file, and the message names the key."""
    found = refusal(**{key: value})
    assert found.param == f"body.{key}"


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({"type": "function_call", "name": "f"}, "body.input[0].type"),
        ({"type": "item_reference", "id": "msg_1"}, "body.input[0].type"),
        ({"role": "tool", "content": "x"}, "body.input[0].role"),
        ({"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}, "body.input[0].content"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "body.input[0].content"),
        ({"role": "user", "content": "x", "name": "Ann"}, "body.input[0].name"),
        ("Hi", "body.input[0]"),
    ],
)
def test_items_that_are_no_text_are_refused(item: object, param: str) -> None:
    """Calls, references and pictures are never dropped silently."""
    assert refusal(input=[item]).param == param


def test_streaming_is_refused_in_its_own_words() -> None:
    """The code that OpenAI's clients know, with the name of this endpoint."""
    found = refusal(stream=True)
    assert (found.code, found.message.partition(":")[0]) == ("streaming_unsupported", "Responses")


@pytest.mark.parametrize(
    "body", [{"store": True}, {"background": True}, {"previous_response_id": "resp_1"}, {"conversation": {}}]
)
def test_where_storing_fails_the_file(body: dict[str, Any]) -> None:
    """In a dialect without stored responses of any kind the keys are refused like others."""
    assert refusal(**body).param == f"body.{next(iter(body))}"


def test_a_file_of_responses(check: Check, store: Store) -> None:
    """Lines are counted as conversations, the most that each may write is filled in, long ones fail alone."""
    checked = check(
        line("plain"),
        line("told", instructions="Be kind"),
        line("open", max_output_tokens=None),
        line("long", input="x" * 8190, max_output_tokens=100),
        line("dense", input="ü" * 4060, max_output_tokens=100),
        line("never", input="FORBIDDEN"),
        endpoint=RESPONSES,
    )
    assert (checked.errors, checked.total, checked.refused) == ((), 6, 3)
    assert [custom_id for _, custom_id in read_ids(store, BATCH, 0)] == ["plain", "told", "open"]
    bodies = stored_bodies(store, BATCH)
    assert [one["max_output_tokens"] for one in bodies] == [8, 8, 1024]
    # u:Say ok;a: and s:Be kind; before it, one token a byte.
    assert checked.input_tokens == 11 + 21 + 11
    assert checked.ceiling_nanos == checked.input_tokens * 10 + (8 + 8 + 1024) * 20
    rows = read_rows(store.read(layout.refused_key(BATCH)))
    errors = [json.loads(row.body)["error"] for row in rows]
    assert [(row.status_code, one["code"], one["param"]) for row, one in zip(rows, errors, strict=True)] == [
        (400, "context_length_exceeded", "input"),
        (400, "context_length_exceeded", "input"),
        (400, "invalid_request", "input"),
    ]
