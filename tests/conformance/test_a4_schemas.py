"""Rows 62 to 64: JSON schemas are judged before they reach an engine, and what they make is never passed off as JSON."""

import json
import re
import time
from typing import Any

import pytest

from tests.conformance.batch_service import Service
from tests.conformance.watching import bodies, by_line, engine_pids, failures, texts

SECONDS_A_SCHEMA = 5
SECONDS_AROUND = 30
PATTERNS = {
    "unclosed": "(",
    "nested": "(a+)+b",
    "twins": "(a|a)*b",
    "long": "a{1,100000}",
    "lookahead": "(?=x)",
    "huge": "a" * 100_000,
}
TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name", "children"],
    "additionalProperties": False,
}


def formatted(schema: Any, **over: Any) -> dict[str, Any]:
    """A response_format with this schema."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema} | over}


def judged(service: Service, formats: dict[str, Any]) -> dict[str, str]:
    """Messages of the formats that were refused, by name. The others ran, beside a good line, to a true end.

    Where validation refuses one, what it passed is sent again without it: each way the file ends in its bounds.
    """
    lines = [service.chat_line(name, response_format=one) for name, one in formats.items()]
    neighbours = [service.chat_line(f"neighbour-{number}") for number in range(2)]
    bound = SECONDS_A_SCHEMA * len(formats) + SECONDS_AROUND
    started = time.monotonic()
    made = service.created([*lines, *neighbours])
    batch = service.finished(made["id"], seconds=bound)
    assert time.monotonic() - started < bound
    refused: dict[str, str] = {}
    if batch["status"] == "failed":
        names = list(formats)
        for number, error in by_line(batch["errors"]["data"]).items():
            assert number <= len(names), f"a neighbour was refused: {error}"
            assert error["param"].startswith("body.response_format"), error
            assert len(error["message"]) < 1_000, error["message"]
            refused[names[number - 1]] = error["message"]
        lines = [one for one in lines if one["custom_id"] not in refused]
        ended = service.run([*lines, *neighbours], seconds=bound)
    else:
        ended = service.ended(batch, [*lines, *neighbours])
    assert ended.batch["status"] == "completed"
    found = bodies(ended)
    assert {"neighbour-0", "neighbour-1"} <= found.keys()
    assert set(failures(ended).values()) <= {"structured_output_invalid", "invalid_request"}
    for name in formats.keys() & found.keys():
        for choice in found[name]["choices"]:
            if choice["finish_reason"] == "stop":
                json.loads(choice["message"]["content"])
    for name, code in failures(ended).items():
        if code == "invalid_request":
            (line,) = (one for one in ended.err if one["custom_id"] == name)
            refused[name] = line["response"]["body"]["error"]["message"]
    return refused


def test_case_62_explosive_patterns(service: Service, request: pytest.FixtureRequest) -> None:
    """Each pattern runs or is refused by the name of its keyword, in seconds; no engine dies, no neighbour suffers."""
    before = engine_pids(request)
    schemas = {
        name: {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
        for name, pattern in PATTERNS.items()
    }
    refused = judged(service, {name: formatted(schema) for name, schema in schemas.items()})
    assert {"unclosed", "lookahead", "huge"} <= refused.keys()
    for name, message in refused.items():
        assert "pattern" in message or (name == "huge" and "limit" in message), message
        assert PATTERNS["huge"][:500] not in message
    assert engine_pids(request) == before or not before, "an engine was started anew"


def test_case_63_unsupported_schemas(service: Service, request: pytest.FixtureRequest) -> None:
    """Each odd schema runs or is refused by the name of what is wrong with it; an answer never goes unconstrained."""
    before = engine_pids(request)
    string = {"type": "object", "properties": {"a": {"type": "string"}}}
    formats = {
        "draft-07 items": formatted({"type": "array", "items": [{}, {}]}),
        "type": formatted({"type": "objct"}),
        "patternProperties": formatted({"type": "object", "patternProperties": {"^a": {"type": "string"}}}),
        "$ref": formatted({"$ref": "#/$defs/nowhere"}),
        "multipleOf": formatted({"type": "integer", "multipleOf": 7}),
        "empty": formatted({}),
        "schema true": formatted(True),
        "schema null": formatted(None),
        "enum": formatted({"enum": [f"v{number}" for number in range(5_000)]}),
        "limit": formatted({"type": "object", "description": "x" * 200_000}),
        "name": {"type": "json_schema", "json_schema": {"schema": string}},
        "name with spaces": formatted(string, name="two words"),
        "strict": formatted(string, strict=True),
        "json_schema": {"type": "json_schema"},
        "yaml": {"type": "yaml"},
        "text with more": {"type": "text", "schema": string},
    }
    refused = judged(service, formats)
    must = {
        "type", "$ref", "schema true", "schema null", "limit", "name", "name with spaces", "json_schema", "yaml",
        "text with more",
    }  # fmt: skip
    assert must <= refused.keys()
    for name, message in refused.items():
        named = {"yaml": "type", "text with more": "schema", "draft-07 items": "items"}.get(
            name, name.split()[0]
        )
        assert named in message, (name, message)
    assert engine_pids(request) == before or not before, "an engine was started anew"


def test_case_64_constrained_answers_end(service: Service) -> None:
    """Cut at max_tokens an answer is delivered and billed; one that stopped is the JSON asked for, or an error line."""
    formats = {
        "empty": formatted({}),
        "tree": formatted(TREE),
        "object": {"type": "json_object"},
        "small": formatted({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
                            "additionalProperties": False}),
    }  # fmt: skip
    lines = [
        service.chat_line(name, response_format=one, max_tokens=64, temperature=0,
                          messages=[{"role": "user", "content": "Answer in JSON."}])
        for name, one in formats.items()
    ]  # fmt: skip
    ended = service.run(lines)
    assert ended.batch["status"] == "completed"
    assert set(failures(ended).values()) <= {"structured_output_invalid"}
    for name, body in bodies(ended).items():
        (text,) = texts(body)
        assert not re.search(r"\s{40}", text), f"{name} is mostly white space: {text!r}"
        if body["choices"][0]["finish_reason"] == "length":
            assert body["usage"]["completion_tokens"] == 64
        else:
            value = json.loads(text)
            assert name == "empty" or isinstance(value, dict)
    if "small" in bodies(ended) and bodies(ended)["small"]["choices"][0]["finish_reason"] == "stop":
        (text,) = texts(bodies(ended)["small"])
        assert json.loads(text)["ok"] in {True, False}
