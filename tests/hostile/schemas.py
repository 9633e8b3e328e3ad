"""Hostile schemas: what response_format may not be, schemas made at random, and bombs."""

import json
from random import Random
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -0.0, 1, -1, 1.0, 0.5, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**300, "", "1", "\0", "😀", [], {}, [[]], {"": None},
)  # fmt: skip


def any_format(chance: Random) -> Any:
    """Everything that response_format may and may not be."""
    forms: tuple[Any, ...] = (
        *VALUES[:12], {"type": "text"}, {"type": "json_object"}, {"type": "json_object", "x": 1}, {"type": "grammar"},
        {"type": "json_schema"}, {"type": "json_schema", "json_schema": {}}, {"type": "json_schema", "json_schema": {"name": "a b"}},
        *({"type": "json_schema", "json_schema": {"name": "a", "schema": one}} for one in VALUES),
        {"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "strict": "yes"}},
    )  # fmt: skip
    return chance.choice(forms)


def formed(schema: Any) -> dict[str, Any]:
    """The response_format of a schema."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def random_schema(chance: Random, depth: int) -> Any:
    """Any keywords with any values, mostly such as they may have."""
    kinds = ("string", "integer", "number", "object", "array", "boolean", "null")
    schema: dict[str, Any] = {"type": chance.choice(kinds)} if chance.random() < 0.7 else {}
    patterns = (
        "^a*$",
        "(",
        "^[a-z]{1,20}$",
        "(?=x)",
        "(a+)+b",
        r"\d{3}",
        "^.*a.{200}$",
        "[",
        "(a{1,99}){1,99}",
        "\\p{L}+",
    )
    for _ in range(chance.randint(0, 4)):
        match chance.randrange(8 if depth else 5):
            case 0:
                schema[chance.choice(("minLength", "maxItems", "maxLength", "minProperties", "minItems"))] = (
                    chance.choice((0, 3, 99, 9_999, -1))
                )
            case 1:
                schema["pattern"] = chance.choice(patterns)
            case 2:
                schema["enum"] = chance.choices(VALUES, k=chance.randint(0, 40))
            case 3:
                schema[chance.choice(("minimum", "maximum", "multipleOf", "exclusiveMinimum"))] = (
                    chance.choice((0, 1, 7, 0.01, 1e300, -(2**63)))
                )
            case 4:
                schema[chance.choice(("$ref", "format", "x-guidance", "not", "if", "const"))] = chance.choice(
                    ("#", "#/$defs/a", "uri", "http://127.0.0.1:9/", {})
                )
            case 5:
                schema["properties"] = {
                    f"p{n}": random_schema(chance, depth - 1) for n in range(chance.randint(0, 6))
                }
            case 6:
                schema[chance.choice(("items", "additionalProperties"))] = random_schema(chance, depth - 1)
            case _:
                parts = [random_schema(chance, depth - 1) for _ in range(chance.randint(0, 4))]
                schema[chance.choice(("anyOf", "allOf", "oneOf"))] = parts
    if depth == 4 and chance.random() < 0.4:
        schema["$defs"] = {"a": random_schema(chance, 3)}
    return schema


def _twice(keyword: str, levels: int) -> dict[str, Any]:
    """A schema that names the next one twice, and so on."""
    steps = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**steps, f"d{levels}": {"type": "string"}}, "$ref": "#/$defs/d0"}


def _any_of(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for number in range(depth):
        schema = {"anyOf": [schema, {"type": "object", "properties": {f"k{number}": schema}}]}
    return schema


BOMBS: tuple[dict[str, Any], ...] = (
    *({"type": "string", "pattern": one} for one in (
        "(", "(a+)+b", "(a|a)*b", "a{1,100000}", "(?=x)", "(a{1,1000}){1,1000}", "^(a{1,1000}){1,1000}$", "a" * 60_000,
        "^[a-z ]*a[a-z ]{300}$", "((a{1,99}){1,99}){1,99}", "^(\\p{L}{1,200}){1,200}$", "(.*a){20}", "|".join(f"w{n}x*" for n in range(4_000)),
    )),
    {"type": "integer", "multipleOf": 999_983}, {"type": "integer", "multipleOf": 199_999}, {"multipleOf": 1e-300}, {"$ref": "#"},
    {"$anchor": "a", "$ref": "#a"}, _twice("allOf", 30), _twice("anyOf", 30), _any_of(9), {"enum": [f"value-{n}" for n in range(4_000)]},
    {"properties": {f"p{n}": {"type": "string", "maxLength": 9_999} for n in range(900)}, "type": "object"},
    {"allOf": [{"pattern": f"^.*{letter}.*$"} for letter in "abcdefghijklmnop"], "type": "string"},
    {"patternProperties": {f"^.*{n}.*$": {} for n in range(30)}}, {"type": "array", "minItems": 10_000, "items": {"minItems": 10_000}},
    {"allOf": [{"oneOf": [{"minLength": n}, {"maxLength": n}]} for n in range(12)], "type": "string"},
    json.loads('{"items":' * 64 + "{}" + "}" * 64),
    {"type": "array", "maxItems": 99, "items": {"type": "array", "maxItems": 99, "items": {"type": "array", "maxItems": 9_999}}},
)  # fmt: skip
