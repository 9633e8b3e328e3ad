"""Reading JSON bodies: what passes, and how each refusal is worded."""

from collections.abc import Callable

import pytest

from gridline import fields
from gridline.errors import InvalidRequest


def test_what_is_right_passes_unchanged() -> None:
    """Each reader returns the value that it was asked about, limits included."""
    body = {"a": 1, "b": None}
    assert fields.keys_of(body, known=("a", "b"), required=("a",)) == body
    assert fields.object_of({}, "x") == {}
    assert fields.array_of([1], "x") == [1]
    assert fields.integer_of(-3, "x") == -3
    assert fields.one_of("b", ("a", "b"), "x") == "b"
    assert fields.bounded("abc", 3, "x") == "abc"


REFUSED: dict[str, tuple[Callable[[], object], str, str | None, str]] = {
    "no object": (
        lambda: fields.object_of([], None), "invalid_type", None,
        "Invalid body: expected a JSON object, but got an array instead.",
    ),
    "unknown key": (
        lambda: fields.keys_of({"z": 1}, known=("a",), required=()), "unknown_parameter", "z", "Unknown parameter: 'z'.",
    ),
    "unknown inner key": (
        lambda: fields.keys_of({"z": 1}, known=("a",), required=(), param="x"),
        "unknown_parameter", "x.z", "Unknown parameter: 'x.z'.",
    ),
    "null for a required key": (
        lambda: fields.keys_of({"a": None}, known=("a",), required=("a",), param="x"),
        "missing_required_parameter", "x.a", "Missing required parameter: 'x.a'.",
    ),
    "text for an array": (
        lambda: fields.array_of("a", "x"), "invalid_type", "x",
        "Invalid type for 'x': expected an array, but got a string instead.",
    ),
    "true for a number": (
        lambda: fields.integer_of(True, "x"), "invalid_type", "x",
        "Invalid type for 'x': expected an integer, but got a boolean instead.",
    ),
    "a fraction for a whole number": (
        lambda: fields.integer_of(3.0, "x"), "invalid_type", "x",
        "Invalid type for 'x': expected an integer, but got a number instead.",
    ),
    "another text": (
        lambda: fields.one_of("q" * 100, ("a", "b"), "x"), "invalid_value", "x",
        f"Invalid value: '{'q' * 64}…'. Supported values are: 'a', 'b'.",
    ),
    "a long text": (
        lambda: fields.bounded("abcd", 3, "x"), "string_above_max_length", "x",
        "Invalid 'x': value too long. Expected a string with maximum length 3, but got a string with length 4 instead.",
    ),
    "a NUL": (
        lambda: fields.bounded("a\0", 3, "x", what="key"), "invalid_value", "x",
        "Invalid 'x': the key holds a NUL character. Leave it out.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_each_refusal_is_worded_as_openai_does(name: str) -> None:
    """Code, parameter and sentence of every refusal."""
    call, code, param, message = REFUSED[name]
    with pytest.raises(InvalidRequest) as caught:
        call()
    assert (caught.value.code, caught.value.param, caught.value.message) == (code, param, message)
