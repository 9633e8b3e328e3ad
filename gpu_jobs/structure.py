"""Holds an answer to the JSON that its request asked for."""

import json
import math
from collections.abc import Iterable
from typing import Any

import jsonschema_rs

ANY_OBJECT: dict[str, Any] = {"type": "object"}


def fault_of(request: dict[str, Any], texts: Iterable[str]) -> str | None:
    """Why one of the texts is not the JSON that was asked for; None when all are, or none was asked for."""
    schema = _wanted(request)
    if schema is None:
        return None
    for text in texts:
        try:
            value = json.loads(text, parse_constant=refused_constant)
        except (ValueError, RecursionError):
            return "The model's answer is not valid JSON. This request is not charged."
        if not _fits(value, schema):
            return "The model's answer does not match the schema asked for. This request is not charged."
    return None


def refused_constant(name: str) -> float:
    """For json.loads: NaN and infinities are no JSON."""
    raise ValueError(f"{name} is no JSON number: {math.nan}")


def _wanted(request: dict[str, Any]) -> Any:
    """The schema that a chat or responses request asks for; None for free text."""
    form = request.get("response_format") or (request.get("text") or {}).get("format") or {}
    if form.get("type") == "json_schema":
        return form.get("json_schema", form).get("schema")
    return ANY_OBJECT if form.get("type") == "json_object" else None


def _fits(value: Any, schema: Any) -> bool:
    try:
        return jsonschema_rs.validator_for(schema, retriever=_refused_reference).is_valid(value)
    except ValueError:
        # A schema that cannot be judged here was taken by validation and by the engine: theirs is the word.
        return True


def _refused_reference(address: str) -> Any:
    raise ValueError(f"schemas may not refer to other documents: {address}")
