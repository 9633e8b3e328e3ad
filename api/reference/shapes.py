"""Short words for JSON Schema (2020-12): each thing of the document is said with its meaning and an example."""

from collections.abc import Iterable, Mapping
from typing import Any

from gridline import ids

Schema = dict[str, Any]

MODEL = "smollm2-135m-instruct"
"""The model of examples."""

AMOUNT = r"^-?[0-9]+\.[0-9]{9}$"


def text(meaning: str, example: str, **more: Any) -> Schema:
    """A string; ``more`` is further keywords of JSON Schema."""
    return {"type": "string", "description": meaning, "examples": [example], **more}


def identity(kind: str, meaning: str) -> Schema:
    """An id of a kind of ``gridline.ids``; the example is the same wherever the document names this kind."""
    return text(meaning, ids.derived(kind, "example"), pattern=f"^{ids.pattern(kind)}$")


def amount(meaning: str, example: str) -> Schema:
    """Credits as a decimal text with nine digits after the point."""
    return text(f"{meaning} In credits (1 credit = 1 USD).", example, pattern=AMOUNT)


def day(meaning: str, example: str) -> Schema:
    """A UTC day as YYYY-MM-DD."""
    return text(meaning, example, format="date", pattern="^2[0-9]{3}-[0-9]{2}-[0-9]{2}$")


def whole(meaning: str, example: int, *, least: int | None = 0, most: int | None = None) -> Schema:
    """An integer from ``least`` to ``most``, both included; None is no bound."""
    bounds = {"minimum": least, "maximum": most}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return {"type": "integer", "description": meaning, **given, "examples": [example]}


def number(meaning: str, example: float, **bounds: float) -> Schema:
    """A number; ``bounds`` are JSON Schema's keywords."""
    return {"type": "number", "description": meaning, **bounds, "examples": [example]}


def moment(meaning: str, example: int) -> Schema:
    """Whole Unix seconds."""
    return whole(f"{meaning} Unix seconds.", example)


def flag(meaning: str, *, example: bool) -> Schema:
    """A boolean."""
    return {"type": "boolean", "description": meaning, "examples": [example]}


def choice(meaning: str, values: Iterable[str], example: str | None = None) -> Schema:
    """One of a fixed set of texts, by default shown by the first."""
    known = [str(one) for one in values]
    return {"type": "string", "enum": known, "description": meaning, "examples": [example or known[0]]}


def constant(value: str | bool, meaning: str) -> Schema:  # noqa: FBT001 - the value itself, no switch
    """Always this value."""
    kind = "boolean" if isinstance(value, bool) else "string"
    return {"type": kind, "const": value, "description": meaning}


def listed(item: Schema, meaning: str, *, least: int | None = None, most: int | None = None) -> Schema:
    """An array."""
    bounds = {"minItems": least, "maxItems": most}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return {"type": "array", "items": item, "description": meaning, **given}


def thing(meaning: str, keys: Mapping[str, Schema], *, optional: Iterable[str] = ()) -> Schema:
    """An object of an answer: every key is always there, but for the optional ones; more may come with a release."""
    left_out = set(optional)
    return {
        "type": "object",
        "description": meaning,
        "properties": dict(keys),
        "required": [name for name in keys if name not in left_out],
    }


def request(meaning: str, keys: Mapping[str, Schema], *, required: Iterable[str]) -> Schema:
    """An object that the caller sends: keys that are not listed are refused."""
    return {
        "type": "object",
        "description": meaning,
        "properties": dict(keys),
        "required": list(required),
        "additionalProperties": False,
    }


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    if "$ref" in schema or "oneOf" in schema or "anyOf" in schema:
        outside: Schema = {key: schema[key] for key in ("description", "examples") if key in schema}
        inside = {key: one for key, one in schema.items() if key not in outside}
        return {"anyOf": [inside, {"type": "null"}], **outside}
    if "enum" in schema:
        schema = schema | {"enum": [*schema["enum"], None]}
    if "const" in schema:
        schema = {key: one for key, one in schema.items() if key != "const"} | {
            "enum": [schema["const"], None]
        }
    return schema | {"type": [schema["type"], "null"]}


def empty(schema: Schema) -> Schema:
    """The same or null, shown as null: what is not there in the state that the examples tell."""
    return nullable(schema) | {"examples": [None]}


def see(name: str, meaning: str | None = None) -> Schema:
    """The component of that name, with a meaning of its own if given."""
    there = {"$ref": f"#/components/schemas/{name}"}
    return there if meaning is None else there | {"description": meaning}


def page(of: str, *, cursors: bool = True) -> Schema:
    """A list object; ``cursors``: with the ids that the next call goes on from."""
    keys: dict[str, Schema] = {
        "object": constant("list", "Always `list`."),
        "data": listed(see(of), "What was found; empty past the end."),
    }
    if cursors:
        keys["first_id"] = nullable(text("Id of the first entry; null when there is none.", ""))
        keys["last_id"] = nullable(text("Id of the last entry: send it as `after` to go on.", ""))
    keys["has_more"] = flag("Whether another page follows.", example=False)
    return thing(f"A page of `{of}`.", keys)
