"""response_format: forms, and schemas that the engine could not take."""

from collections.abc import Callable
from typing import Any

import pytest

from gridline.lines.errors import LineRefused
from gridline.lines.fields import Fields
from gridline.lines.schema_judge import SchemaJudge
from gridline.lines.schemas import read_response_format

Read = Callable[[object], dict[str, Any] | None]
Refusal = Callable[[object], LineRefused]


@pytest.fixture
def read(judge: SchemaJudge) -> Read:
    """Reads one response_format."""
    return lambda value: read_response_format(Fields({"response_format": value}, "body"), judge)


@pytest.fixture
def refusal(read: Read) -> Refusal:
    """The refusal of one response_format."""

    def refused(value: object) -> LineRefused:
        with pytest.raises(LineRefused) as caught:
            read(value)
        return caught.value

    return refused


def named(schema: object, **over: Any) -> dict[str, Any]:
    """A json_schema form."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, **over}}


def with_pattern(pattern: str) -> dict[str, Any]:
    """A schema with one pattern."""
    return {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}


def test_forms(read: Read) -> None:
    """Text is the default and not sent; JSON forms are sent without their nulls."""
    assert read(None) is None
    assert read({"type": "text"}) is None
    assert read({"type": "json_object"}) == {"type": "json_object"}
    assert read(named({}, strict=None)) == named({})


@pytest.mark.parametrize("value", ["json", {}, {"type": "grammar"}, {"type": "json_object", "schema": {}}])
def test_other_forms(refusal: Refusal, value: object) -> None:
    """Anything else is refused."""
    assert str(refusal(value).param).startswith("body.response_format")


@pytest.mark.parametrize("pattern", ["(", "(?=x)", "\\1(a)", "\\bx"])
def test_case_62_patterns_that_the_engine_cannot_take(refusal: Refusal, pattern: str) -> None:
    """A bad pattern is refused at the schema, with the reason."""
    found = refusal(named(with_pattern(pattern)))
    assert found.param == "body.response_format.json_schema.schema"
    assert found.message.startswith("This schema cannot be used: 'pattern': ")


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "[a-z]{1,20}"])
def test_case_62_patterns_that_it_can(read: Read, pattern: str) -> None:
    """A pattern that is only unusual passes."""
    assert read(named(with_pattern(pattern))) == named(with_pattern(pattern))


def test_case_62_long_pattern(refusal: Refusal) -> None:
    """A pattern of 100 kB is refused by size."""
    assert "bytes long" in refusal(named(with_pattern("a" * 100_000))).message


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"type": "objct"}, "objct"),
        ({"$ref": "#/$defs/nowhere"}, "nowhere"),
        ({"$ref": "http://127.0.0.1:1/x"}, "http"),
        ({"$ref": "#"}, "$ref"),
        (
            {
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}},
                "$ref": "#/$defs/a",
            },
            "$ref",
        ),
        ({"properties": {"x": {"allOf": [{"$ref": "#/properties/x"}]}}}, "$ref"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"not": {"type": "string"}}, "not"),
        ({"type": "array", "minItems": 10**7}, "minItems"),
        ({"type": "string", "minLength": 10**8}, "minLength"),
        ({"x-guidance": {}}, "x-guidance"),
        ({"type": "integer", "maximum": 10**400}, "'maximum'"),
        ({"enum": ["x" * 100] * 2_000}, "bytes long"),
    ],
)
def test_case_63_schemas_that_the_engine_cannot_take(
    refusal: Refusal, schema: dict[str, Any], word: str
) -> None:
    """A schema is refused by the keyword that the engine cannot take."""
    assert word in refusal(named(schema)).message


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"items": [{}, {}]},
        {"multipleOf": 3},
        {"enum": [str(number) for number in range(5000)]},
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
        {"$defs": {"a/b": {"type": "string"}}, "allOf": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/a~1b"}]},
    ],
)
def test_case_63_schemas_that_it_can(read: Read, schema: dict[str, Any]) -> None:
    """Legal schemas pass, recursive ones included."""
    assert read(named(schema)) == named(schema)


@pytest.mark.parametrize("schema", [True, None, [], "x"])
def test_case_63_schema_must_be_an_object(refusal: Refusal, schema: object) -> None:
    """Without a schema object nothing would be held to it."""
    assert refusal(named(schema)).param == "body.response_format.json_schema.schema"


@pytest.mark.parametrize("name", [None, "", "a b", "x" * 65, 5])
def test_case_63_name(refusal: Refusal, name: object) -> None:
    """OpenAI's rule for names."""
    assert refusal(named({}, name=name)).param == "body.response_format.json_schema.name"


def test_infinite_number(refusal: Refusal) -> None:
    """A number beyond all floats, as 1e999 is read, is refused."""
    assert "finite" in refusal(named({"maximum": float("inf")})).message
