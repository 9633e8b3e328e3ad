"""Whole files with schemas: which line is refused and why, how long a file of bombs takes, what is left over."""

import json
import time
from typing import Any

import psutil
import pytest

from gridline.limits import SCHEMAS_OF_FILE_SECONDS_MAX
from gridline.lines import schema_judge
from gridline.storage import layout
from gridline.storage.objects import Store

from .conftest import BATCH, Check, chat_line

pytestmark = pytest.mark.programs

Schema = dict[str, Any]
PARAM = "body.response_format.json_schema.schema"


def with_schema(custom_id: str, schema: Schema) -> dict[str, Any]:
    """A chat line that asks for this schema."""
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return chat_line(custom_id, response_format=form)


def with_pattern(pattern: str) -> Schema:
    """A schema with one pattern."""
    return {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}


def any_of(depth: int) -> Schema:
    """Alternatives in alternatives, as deep as said."""
    schema: Schema = {"type": "string"}
    for number in range(depth):
        schema = {"anyOf": [schema, {"type": "object", "properties": {f"k{number}": schema}}]}
    return schema


def bomb(number: int) -> Schema:
    """A schema that takes more than its time, unlike the others."""
    schema: Schema = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(40)
    }
    return {"title": f"{number}", "$defs": {**schema, "d40": {"type": "string"}}, "$ref": "#/$defs/d0"}


REFUSED: list[tuple[Schema, str]] = [
    (with_pattern("("), "'pattern'"),
    (with_pattern("(?=x)"), "'pattern'"),
    (with_pattern("a" * 100_000), "bytes long"),
    (any_of(12), "bytes long"),
    ({"enum": [f"value {number}" for number in range(10_000)]}, "bytes long"),
    ({"enum": ["x" * 100 + str(number) for number in range(9_500)]}, "bytes long"),
    ({"$ref": "#"}, "'$ref'"),
    ({"type": "objct"}, "'type'"),
    ({"$ref": "#/nowhere"}, "'$ref'"),
    ({"multipleOf": 0}, "'multipleOf'"),
    ({"type": "object", "patternProperties": {"(": {}}}, "'patternProperties'"),
]
TAKEN: list[Schema] = [
    with_pattern("(a+)+b"),
    with_pattern("(a|a)*b"),
    with_pattern("a{1,100000}"),
    any_of(6),
    {"items": [{}, {}]},
    {"patternProperties": {"^x": {"type": "string"}}},
    {"multipleOf": 3},
    {"enum": [str(number) for number in range(5_000)]},
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    {},
]


@pytest.mark.parametrize(("schema", "words"), REFUSED)
def test_case_62_and_63_refused(check: Check, schema: Schema, words: str) -> None:
    """Among twenty good lines the one with the schema is named, and the schema's keyword in it."""
    good = [chat_line(f"{number}") for number in range(20)]
    started = time.monotonic()
    (error,) = check(*good[:10], with_schema("bad", schema), *good[10:]).errors
    assert time.monotonic() - started < 10
    assert (error.line, error.param, error.code) == (11, PARAM, "invalid_request")
    assert words in error.message


def test_case_62_and_63_taken(check: Check, store: Store) -> None:
    """A file whose schemas are all fine runs, each as it was written."""
    checked = check(*[with_schema(f"{number}", schema) for number, schema in enumerate(TAKEN)])
    assert (checked.errors, checked.total, checked.refused) == ((), len(TAKEN), 0)
    assert store.read(layout.partition_lines_key(BATCH, 0))


@pytest.mark.conformance
@pytest.mark.deep
@pytest.mark.timeout(240)
def test_a_hundred_bombs(check: Check) -> None:
    """They take a minute together, all are refused, memory stays as it was, and no judge is left over."""
    process = psutil.Process()
    check(with_schema("warm", {}))
    before, memory = process.children(), process.memory_info().rss
    started = time.monotonic()
    checked = check(*[with_schema(f"{number}", bomb(number)) for number in range(100)], chat_line("good"))
    # Beside the judging, a busy machine takes its time to end and reap the last judge.
    assert time.monotonic() - started < SCHEMAS_OF_FILE_SECONDS_MAX + 5
    assert (checked.errors_total, checked.total) == (100, 101)
    assert {error.param for error in checked.errors} == {PARAM}
    assert "5 seconds" in checked.errors[0].message
    assert checked.errors[99].message == f"This schema cannot be used: {schema_judge.TOO_MANY}"
    assert process.memory_info().rss - memory < 32 << 20
    assert process.children() == before
    assert len(json.dumps([error.as_dict() for error in checked.errors])) < 90_200
