"""What an answer's format may ask for; whether the engine can take its schema is left to the judge."""

import json
import re
from typing import Any

from gridline.lines.fields import Fields, shown
from gridline.lines.schema_judge import SchemaJudge

KEYS = frozenset({"name", "schema", "strict", "description"})


def read_response_format(body: Fields, judge: SchemaJudge) -> dict[str, Any] | None:
    """Chat's ``response_format``, cleaned; None for absent or plain text.

    Raises:
        LineRefused: an unknown form, or a schema that the engine cannot take, naming the keyword.
        JudgeUnavailable: this machine cannot judge a schema.
    """
    form = _form(body, "response_format")
    if form is None:
        return None
    if _kind(form) != "json_schema":
        return _without_schema(form)
    form.only(frozenset({"type", "json_schema"}))
    value = form.values.get("json_schema")
    if type(value) is not dict:
        form.refuse("json_schema", "'json_schema' must be an object with a name and a schema.")
    named = Fields(value, form.param("json_schema"))
    named.only(KEYS)
    return {"type": "json_schema", "json_schema": _named_schema(named, judge)}


def read_text_format(text: Fields, judge: SchemaJudge) -> dict[str, Any] | None:
    """The ``format`` of a response's ``text``, cleaned; None for absent or plain text.

    Raises:
        LineRefused: as ``read_response_format``.
        JudgeUnavailable: this machine cannot judge a schema.
    """
    form = _form(text, "format")
    if form is None:
        return None
    if _kind(form) != "json_schema":
        return _without_schema(form)
    form.only(KEYS | {"type"})
    return _named_schema(form, judge)


def _form(body: Fields, key: str) -> Fields | None:
    value = body.values.get(key)
    if value is None:
        return None
    if type(value) is not dict:
        body.wrong_type(key, "an object")
    return Fields(value, body.param(key))


def _kind(form: Fields) -> str:
    kind = form.values.get("type")
    if kind not in ("text", "json_object", "json_schema"):
        form.refuse(
            "type", f"Invalid 'type': expected text, json_object or json_schema, but got {shown(kind)}."
        )
    return str(kind)


def _without_schema(form: Fields) -> dict[str, Any] | None:
    form.only(frozenset({"type"}))
    return None if form.values["type"] == "text" else {"type": "json_object"}


def _named_schema(named: Fields, judge: SchemaJudge) -> dict[str, Any]:
    """The object that holds a schema and its name, if the engine can take it; without what is null."""
    name = named.text("name")
    if name is None or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        named.refuse("name", "'name' must be 1 to 64 letters, digits, underscores and dashes.")
    named.flag("strict")
    named.text("description")
    schema = named.values.get("schema")
    if type(schema) is not dict:
        named.refuse("schema", "'schema' must be a JSON Schema object.")
    try:
        text = json.dumps(schema, allow_nan=False)
    except ValueError:
        named.refuse("schema", "Numbers in 'schema' must be finite.")
    problem = judge.problem_of(text)
    if problem:
        named.refuse("schema", f"This schema cannot be used: {problem}")
    return {key: one for key, one in named.values.items() if one is not None}
