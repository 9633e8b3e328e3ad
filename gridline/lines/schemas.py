"""What response_format may ask for; whether the engine can take its schema is left to the judge."""

import json
import re
from typing import Any

from gridline.lines.fields import Fields, shown
from gridline.lines.schema_judge import SchemaJudge


def read_response_format(body: Fields, judge: SchemaJudge) -> dict[str, Any] | None:
    """The cleaned response_format; None for absent or plain text.

    Raises:
        LineRefused: an unknown form, or a schema that the engine cannot take, naming the keyword.
        JudgeUnavailable: this machine cannot judge a schema.
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
        return {"type": "json_schema", "json_schema": _json_schema(form, judge)}
    if kind not in {"text", "json_object"}:
        form.refuse(
            "type", f"Invalid 'type': expected text, json_object or json_schema, but got {shown(kind)}."
        )
    form.only(frozenset({"type"}))
    return None if kind == "text" else {"type": "json_object"}


def _json_schema(form: Fields, judge: SchemaJudge) -> dict[str, Any]:
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
    problem = judge.problem_of(text)
    if problem:
        named.refuse("schema", f"This schema cannot be used: {problem}")
    return {key: one for key, one in value.items() if one is not None}
