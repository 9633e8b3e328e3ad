"""Bounds of ours on a JSON schema, seen without the library that judges it: they cost nothing and name what is over."""

import json
from collections.abc import Iterator
from typing import Any

from gridline.limits import SCHEMA_BYTES_MAX, SCHEMA_COUNT_MAX, SCHEMA_DEPTH_MAX, SCHEMA_PATTERNS_MAX
from gridline.lines.fields import depth_of, shown

COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
NUMBER_MAX = 10**308
"""About the largest number that fits a float: the engine reads no other."""
IN_PLACE = ("allOf", "anyOf", "oneOf")
"""Keywords whose sub-schemas apply to the same value: a reference that comes back through them never ends."""


def bound_problem_of(text: str) -> str | None:
    """Which bound the schema (JSON as text) is over; None when it keeps them all."""
    if len(text) > SCHEMA_BYTES_MAX:
        return f"it is {len(text)} bytes long, and the limit is {SCHEMA_BYTES_MAX}."
    schema = json.loads(text)
    if depth_of(schema) > SCHEMA_DEPTH_MAX:
        return f"it is nested deeper than the limit of {SCHEMA_DEPTH_MAX} levels."
    patterns = len({pattern for _, pattern in patterns_of(schema)})
    if patterns > SCHEMA_PATTERNS_MAX:
        return f"it has {patterns} different 'pattern's, and the limit is {SCHEMA_PATTERNS_MAX}."
    return _count_problem(schema) or _reference_problem(schema)


def _count_problem(schema: dict[str, Any]) -> str | None:
    """Counts that unroll into grammars of that size, and keywords that steer the library itself."""
    for node in _objects(schema):
        if "x-guidance" in node:
            return "'x-guidance' is not supported."
        for key in COUNTS:
            count = node.get(key)
            if isinstance(count, int | float) and count > SCHEMA_COUNT_MAX:
                return f"'{key}' is {shown(count)}, and the limit is {SCHEMA_COUNT_MAX}."
        for key, number in node.items():
            if type(number) is int and abs(number) > NUMBER_MAX:
                return f"'{key}' is out of the range of numbers."
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


def patterns_of(schema: object) -> Iterator[tuple[str, str]]:
    """Every regular expression inside, after the keyword that it stands at."""
    for node in _objects(schema):
        if isinstance(node.get("pattern"), str):
            yield "pattern", node["pattern"]
        if isinstance(node.get("patternProperties"), dict):
            yield from (("patternProperties", one) for one in node["patternProperties"])
