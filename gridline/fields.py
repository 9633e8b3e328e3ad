"""Strict reading of JSON bodies: keys, types and values, refused in OpenAI's words. Knows neither HTTP nor the database."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gridline.errors import InvalidRequest

SHOWN_CHARS_MAX = 64


def keys_of(
    value: object, *, known: Sequence[str], required: Collection[str], param: str | None = None
) -> Mapping[str, Any]:
    """The object at ``param`` (None: the body itself), which has the required keys and no unknown one.

    Null counts as absent.

    Raises:
        InvalidRequest: no object, or naming the first key that is unknown or missing.
    """
    given = object_of(value, param)
    path = f"{param}." if param else ""
    for key in given:
        if key not in known:
            name = f"{path}{short(key)}"
            raise InvalidRequest(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
    for key in required:
        if given.get(key) is None:
            name = f"{path}{key}"
            raise InvalidRequest(
                f"Missing required parameter: '{name}'.", code="missing_required_parameter", param=name
            )
    return given


def object_of(value: object, param: str | None) -> Mapping[str, Any]:
    """The value, if it is a JSON object; ``param`` None means the body itself.

    Raises:
        InvalidRequest: another type.
    """
    if isinstance(value, dict):
        return value
    if param is None:
        raise InvalidRequest(
            f"Invalid body: expected a JSON object, but got {_kind(value)} instead.", code="invalid_type"
        )
    raise wrong_type(param, "an object", value)


def array_of(value: object, param: str) -> Sequence[Any]:
    """The value, if it is a JSON array.

    Raises:
        InvalidRequest: another type.
    """
    if isinstance(value, list):
        return value
    raise wrong_type(param, "an array", value)


def text_of(value: object, param: str) -> str:
    """The value, if it is a string.

    Raises:
        InvalidRequest: another type.
    """
    if isinstance(value, str):
        return value
    raise wrong_type(param, "a string", value)


def integer_of(value: object, param: str) -> int:
    """The value, if it is a whole number; ``true`` and ``3.0`` are none.

    Raises:
        InvalidRequest: another type.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise wrong_type(param, "an integer", value)


def one_of(value: object, allowed: Collection[str], param: str) -> str:
    """The value, if it is one of these texts.

    Raises:
        InvalidRequest: another type or text.
    """
    text = text_of(value, param)
    if text not in allowed:
        names = ", ".join(f"'{one}'" for one in allowed)
        raise InvalidRequest(
            f"Invalid value: '{short(text)}'. Supported values are: {names}.",
            code="invalid_value",
            param=param,
        )
    return text


def bounded(text: str, chars_max: int, param: str, *, what: str = "value") -> str:
    """The text, if it is at most ``chars_max`` characters long and holds no NUL; ``what`` is key or value.

    Raises:
        InvalidRequest: longer, or with a NUL.
    """
    if len(text) > chars_max:
        raise InvalidRequest(
            f"Invalid '{param}': {what} too long. Expected a string with maximum length {chars_max}, "
            f"but got a string with length {len(text)} instead.",
            code="string_above_max_length",
            param=param,
        )
    if "\0" in text:
        # JSON may carry it, the database's JSON type may not: better said here than met there.
        raise InvalidRequest(
            f"Invalid '{param.replace(chr(0), '')}': the {what} holds a NUL character. Leave it out.",
            code="invalid_value",
            param=param.partition(".")[0],
        )
    return text


def wrong_type(param: str, wanted: str, value: object) -> InvalidRequest:
    """The refusal of a value of another type; ``wanted`` has its article."""
    return InvalidRequest(
        f"Invalid type for '{param}': expected {wanted}, but got {_kind(value)} instead.",
        code="invalid_type",
        param=param,
    )


def short(text: str) -> str:
    """What a message may repeat of the caller's text."""
    return text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…"


def _kind(value: object) -> str:
    """JSON's name of a value's type, with its article."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), "an object")
