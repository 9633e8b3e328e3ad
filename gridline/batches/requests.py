"""What the body of a create may hold: types, keys, ranges, in OpenAI's words. Knows neither HTTP nor the database."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from gridline import limits
from gridline.errors import InvalidRequest
from gridline.files.retention import check_expires_after
from gridline.profiles.profile import Profile

_KEYS = ("input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after")
_REQUIRED = _KEYS[:3]


@dataclass(frozen=True)
class CreateRequest:
    """A create that is right in itself; whether its file exists and fits is decided later."""

    input_file_id: str
    endpoint: str
    completion_window: str
    metadata: dict[str, str] | None = None
    output_expires_after_seconds: int | None = None


def parse_create(body: object, profile: Profile) -> CreateRequest:
    """The create that a JSON body asks for; null counts as absent.

    Raises:
        InvalidRequest: naming the first parameter that is missing, unknown, of the wrong type or out of range.
    """
    given = _object(body, None)
    for key in given:
        if key not in _KEYS:
            raise InvalidRequest(
                f"Unknown parameter: '{_short(key)}'.", code="unknown_parameter", param=_short(key)
            )
    for key in _REQUIRED:
        if given.get(key) is None:
            raise InvalidRequest(
                f"Missing required parameter: '{key}'.", code="missing_required_parameter", param=key
            )
    return CreateRequest(
        input_file_id=_file_id(given["input_file_id"]),
        endpoint=_one_of(given["endpoint"], profile.endpoints, "endpoint"),
        completion_window=_one_of(given["completion_window"], profile.windows, "completion_window"),
        metadata=_metadata(given.get("metadata")),
        output_expires_after_seconds=_expires_after(given.get("output_expires_after")),
    )


def _file_id(value: object) -> str:
    text = _text(value, "input_file_id")
    _bounded(text, limits.METADATA_KEY_CHARS_MAX, "input_file_id", "value")
    return text


def _metadata(value: object) -> dict[str, str] | None:
    if value is None:
        return None
    pairs = _object(value, "metadata")
    if len(pairs) > limits.METADATA_PAIRS_MAX:
        raise InvalidRequest(
            f"Invalid 'metadata': too many properties. Expected an object with at most "
            f"{limits.METADATA_PAIRS_MAX} properties, but got {len(pairs)} properties instead.",
            code="object_above_max_properties",
            param="metadata",
        )
    for key, text in pairs.items():
        _bounded(key, limits.METADATA_KEY_CHARS_MAX, "metadata", "key")
        _bounded(_text(text, f"metadata.{key}"), limits.METADATA_VALUE_CHARS_MAX, f"metadata.{key}", "value")
    return dict(pairs)


def _bounded(text: str, chars_max: int, param: str, what: str) -> None:
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


def _expires_after(value: object) -> int | None:
    if value is None:
        return None
    param = "output_expires_after"
    given = _object(value, param)
    for key in given:
        if key not in ("anchor", "seconds"):
            name = f"{param}.{_short(key)}"
            raise InvalidRequest(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
    for key in ("anchor", "seconds"):
        if given.get(key) is None:
            name = f"{param}.{key}"
            raise InvalidRequest(
                f"Missing required parameter: '{name}'.", code="missing_required_parameter", param=name
            )
    _one_of(given["anchor"], ("created_at",), f"{param}.anchor")
    seconds = given["seconds"]
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise _wrong_type(f"{param}.seconds", "an integer", seconds)
    return check_expires_after(seconds, f"{param}.seconds")


def _object(value: object, param: str | None) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    if param is None:
        raise InvalidRequest(
            f"Invalid body: expected a JSON object, but got {_kind(value)} instead.", code="invalid_type"
        )
    raise _wrong_type(param, "an object", value)


def _text(value: object, param: str) -> str:
    if isinstance(value, str):
        return value
    raise _wrong_type(param, "a string", value)


def _one_of(value: object, allowed: Collection[str], param: str) -> str:
    text = _text(value, param)
    if text not in allowed:
        names = ", ".join(f"'{one}'" for one in allowed)
        raise InvalidRequest(
            f"Invalid value: '{_short(text)}'. Supported values are: {names}.",
            code="invalid_value",
            param=param,
        )
    return text


def _wrong_type(param: str, wanted: str, value: object) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid type for '{param}': expected {wanted}, but got {_kind(value)} instead.",
        code="invalid_type",
        param=param,
    )


def _kind(value: object) -> str:
    """JSON's name of a value's type, with its article."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), "an object")


def _short(text: str) -> str:
    """What a message may repeat of the caller's text."""
    return text if len(text) <= limits.METADATA_KEY_CHARS_MAX else text[: limits.METADATA_KEY_CHARS_MAX] + "…"
