"""The reference's lines of responses and messages: the document, the readers and the GPU job agree."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jsonschema_rs import validator_for

from api.app import create_app
from api.reference.document import build
from gpu_jobs.answers import Answerer
from gpu_jobs.partition import Line, Spec
from gridline.catalog.cards import catalogue
from gridline.lines import endpoints, messages, responses
from gridline.lines.errors import LineRefused
from gridline.lines.schema_judge import SchemaJudge
from gridline.profiles.profile import load
from tests.api.conftest import MODEL
from tests.gpu_jobs.test_dialect_answers import MESSAGE, RESPONSE

SCHEMAS = build(create_app(load("gridport")))["components"]["schemas"]
Read = Callable[[dict[str, Any]], object]


def read_response(body: dict[str, Any]) -> object:
    """What the reader of responses makes of a body."""
    return responses.read_response(body, catalogue()[MODEL], SchemaJudge())


def read_message(body: dict[str, Any]) -> object:
    """What the reader of messages makes of a body."""
    return messages.read_message(body, catalogue()[MODEL], SchemaJudge())


BODIES: dict[str, tuple[dict[str, Any], Read, frozenset[str]]] = {
    "ResponseBody": (
        {"model": MODEL, "input": "Hi"},
        read_response,
        responses.ALLOWED,
    ),
    "MessageBody": (
        {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8},
        read_message,
        messages.ALLOWED,
    ),
}
SAMPLES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ResponseBody", {"input": []}),
    ("ResponseBody", {"input": ""}),
    ("ResponseBody", {"input": [{"role": "user", "content": "Hi"}]}),
    ("ResponseBody", {"input": [{"type": "message", "role": "developer", "content": "Hi"}]}),
    ("ResponseBody", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}]}),
    ("ResponseBody", {"input": [{"role": "user", "content": [{"type": "input_image", "text": "a"}]}]}),
    ("ResponseBody", {"input": [{"type": "reasoning", "role": "user", "content": "Hi"}]}),
    ("ResponseBody", {"text": {"format": {"type": "json_object"}}}),
    ("ResponseBody", {"text": {"format": {"type": "xml"}}}),
    ("ResponseBody", {"text": {"verbosity": "low"}}),
    ("ResponseBody", {"metadata": {"a": "b"}, "user": "u", "truncation": "disabled"}),
    ("ResponseBody", {"metadata": {"a": 1}}),
    ("ResponseBody", {"truncation": "auto"}),
    *(("ResponseBody", {key: value}) for key in ("store", "background") for value in (True, False, None)),
    *(
        ("ResponseBody", {key: value})
        for key in ("conversation", "previous_response_id")
        for value in ("x", None)
    ),
    ("MessageBody", {"system": "x", "stop_sequences": ["a"], "metadata": {"user_id": "u"}}),
    ("MessageBody", {"system": [{"type": "text", "text": "x"}], "stop_sequences": []}),
    ("MessageBody", {"messages": [{"role": "user", "content": ""}]}),
    ("MessageBody", {"messages": [{"role": "system", "content": "x"}]}),
    ("MessageBody", {"messages": []}),
    ("MessageBody", {"stop_sequences": ["a"] * 5}),
    ("MessageBody", {"metadata": {"team": "a"}}),
    ("MessageBody", {"store": True}),
    ("MessageBody", {"max_tokens": None}),
)


def fits(component: str, value: object) -> bool:
    """Whether a value is an instance of a component of the second dialect's document."""
    known = {"components": {"schemas": SCHEMAS}}
    return bool(validator_for({"$ref": f"#/components/schemas/{component}"} | known).is_valid(value))


def bounds() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each numeric key of the bodies with values at its bounds and just outside."""
    for component in BODIES:
        for key, schema in SCHEMAS[component]["properties"].items():
            for bound in ("minimum", "exclusiveMinimum", "maximum"):
                if bound in schema:
                    yield from ((component, {key: schema[bound] + step}) for step in (-1, 0, 1))


@pytest.mark.parametrize("component", BODIES)
def test_keys_are_those_that_are_read(component: str) -> None:
    """A body's keys in the document are those that its reader allows."""
    assert set(SCHEMAS[component]["properties"]) == BODIES[component][2]


@pytest.mark.parametrize(("component", "more"), [*SAMPLES, *bounds()])
def test_values_are_those_that_are_read(component: str, more: dict[str, Any]) -> None:
    """The document and the reader agree on what a body may hold."""
    body, read, _ = BODIES[component]
    body = body | more
    try:
        read(body)
        taken = True
    except LineRefused:
        taken = False
    assert fits(component, body) is taken


@pytest.mark.parametrize(
    ("endpoint", "answer", "component"),
    [(endpoints.RESPONSES, RESPONSE, "Response"), (endpoints.MESSAGES, MESSAGE, "Message")],
)
def test_answers_are_as_described(endpoint: str, answer: dict[str, Any], component: str) -> None:
    """What the GPU job delivers has exactly the keys that the document says."""
    line = Line(0, "a", json.dumps({"model": MODEL, "max_output_tokens": 8}), 3)
    row = Answerer(Spec("b", 0, endpoint, {"id": MODEL}, "", 1)).delivered(line, json.dumps(answer).encode())
    body = json.loads(row.body)
    assert fits(component, body)
    assert list(body) == list(SCHEMAS[component]["properties"])


def test_lines_of_every_endpoint_fit() -> None:
    """An input may hold lines of all four, each with the body of its own endpoint."""
    lines = [
        {"custom_id": "a", "method": "POST", "url": url, "body": BODIES[component][0]}
        for url, component in ((endpoints.RESPONSES, "ResponseBody"), (endpoints.MESSAGES, "MessageBody"))
    ]
    assert all(fits("InputLine", one) for one in lines)
    assert not fits("InputLine", lines[0] | {"url": endpoints.CHAT})
    default = build(create_app(load("gridline")))["components"]["schemas"]
    assert "ResponseBody" not in default
