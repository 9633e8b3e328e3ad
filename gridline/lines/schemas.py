"""What response_format may ask for. Judged by the engine's own library, and by bounds of ours before it."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from llguidance import LLMatcher

from gridline.limits import SCHEMA_BYTES_MAX, SCHEMA_COUNT_MAX
from gridline.lines.fields import Fields, shown

COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
IN_PLACE = ("allOf", "anyOf", "oneOf")
"""Keywords whose sub-schemas apply to the same value: a reference that comes back through them never ends."""


def read_response_format(body: Fields) -> dict[str, Any] | None:
    """The cleaned response_format; None for absent or plain text.

    Raises:
        LineRefused: an unknown form, or a schema that the engine cannot take, naming the keyword.
    """
    value = body.values.get("response_format")
    if value is None:
        return None
    if type(value) is not dict:
        body.wrong_type("response_format", "an object")
    form = Fields(value, body.param("response_format"))
    kind = value.get("type")
    if kind == "json_schema":
        form.only(frozenset({"type", "json_schema"}))
        return {"type": "json_schema", "json_schema": _json_schema(form)}
    if kind not in {"text", "json_object"}:
        form.refuse(
            "type", f"Invalid 'type': expected text, json_object or json_schema, but got {shown(kind)}."
        )
    form.only(frozenset({"type"}))
    return None if kind == "text" else {"type": "json_object"}


def _json_schema(form: Fields) -> dict[str, Any]:
    """The named schema."""
    value = form.values.get("json_schema")
    if type(value) is not dict:
        form.refuse("json_schema", "'json_schema' must be an object with a name and a schema.")
    named = Fields(value, form.param("json_schema"))
    named.only(frozenset({"name", "schema", "strict", "description"}))
    name = named.text("name")
    if name is None or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        named.refuse("name", "'name' must be 1 to 64 letters, digits, underscores and dashes.")
    named.flag("strict")
    named.text("description")
    schema = value.get("schema")
    if type(schema) is not dict:
        named.refuse("schema", "'schema' must be a JSON Schema object.")
    try:
        text = json.dumps(schema, allow_nan=False)
    except ValueError:
        named.refuse("schema", "Numbers in 'schema' must be finite.")
    problem = problem_of(text)
    if problem:
        named.refuse("schema", f"This schema cannot be used: {problem}")
    return {key: one for key, one in value.items() if one is not None}


@lru_cache(maxsize=128)
def problem_of(text: str) -> str | None:
    """Why the engine cannot take the schema, naming the keyword; None when it can.

    The one door to the judging library: a killable process with a time limit belongs behind it.
    """
    if len(text) > SCHEMA_BYTES_MAX:
        return f"it is {len(text)} bytes long, and the limit is {SCHEMA_BYTES_MAX}."
    schema = json.loads(text)
    return _count_problem(schema) or _reference_problem(schema) or _library_problem(text)


def _count_problem(schema: dict[str, Any]) -> str | None:
    """Counts that unroll into grammars of that size, and keywords that steer the library itself."""
    for node in _objects(schema):
        if "x-guidance" in node:
            return "'x-guidance' is not supported."
        for key in COUNTS:
            count = node.get(key)
            if isinstance(count, int | float) and count > SCHEMA_COUNT_MAX:
                return f"'{key}' is {shown(count)}, and the limit is {SCHEMA_COUNT_MAX}."
    return None


def _objects(value: object) -> Iterator[dict[str, Any]]:
    """Every object inside, itself included."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _reference_problem(schema: dict[str, Any]) -> str | None:
    """References to themselves without anything between: the engine would follow them for ever."""
    done: set[int] = set()
    for start in _objects(schema):
        path: list[tuple[dict[str, Any], bool]] = [(start, False)]
        open_nodes: set[int] = set()
        while path:
            node, leaving = path.pop()
            if leaving:
                open_nodes.discard(id(node))
                done.add(id(node))
            elif id(node) in open_nodes:
                return "'$ref' leads back to itself."
            elif id(node) not in done:
                open_nodes.add(id(node))
                path.append((node, True))
                path.extend((one, False) for one in _same_value(node, schema))
    return None


def _same_value(node: dict[str, Any], root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas that apply to the very value that this one applies to."""
    for key in IN_PLACE:
        parts = node.get(key)
        if isinstance(parts, list):
            yield from (part for part in parts if isinstance(part, dict))
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target = _resolved(root, reference)
        if isinstance(target, dict):
            yield target


def _resolved(root: dict[str, Any], reference: str) -> object:
    """What a local JSON pointer points to; None for nothing (the library names that one)."""
    node: object = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = node.get(key)
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node


def _library_problem(text: str) -> str | None:
    """The engine's library's own verdict."""
    try:
        grammar = LLMatcher.grammar_from_json_schema(text, defaults={"whitespace_flexible": True})
    except ValueError as error:
        return f"{error}."
    failed, messages = LLMatcher.validate_grammar_with_warnings(grammar)
    return " ".join(messages)[:500] + "." if failed else None
