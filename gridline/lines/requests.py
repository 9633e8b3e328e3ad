"""One line read strictly: JSON, the four keys around a request, its custom_id. Bodies are read elsewhere."""

import unicodedata
from dataclasses import dataclass
from typing import Any

import jiter

from gridline.limits import CUSTOM_ID_CHARS_MAX, JSON_DEPTH_MAX, LINE_BYTES_MAX
from gridline.lines.errors import LineRefused
from gridline.lines.fields import depth_of, kind_of, shown
from gridline.lines.reading import PhysicalLine

KEYS = ("custom_id", "method", "url", "body")

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Request:
    """What every line says, whatever its endpoint."""

    custom_id: str
    body: dict[str, Any]


def read_request(line: PhysicalLine, endpoint: str) -> Request:
    """The request of a line for this endpoint; its body's own rules are not looked at yet.

    Raises:
        LineRefused: the first rule that the line breaks.
    """
    values = _read_object(line)
    unknown = [key for key, value in values.items() if key not in KEYS and value is not None]
    missing = [key for key in KEYS if values.get(key) is None]
    if missing:
        names = ", ".join(f"'{key}'" for key in missing)
        plural = "s" if len(missing) > 1 else ""
        raise LineRefused(
            f"Missing required parameter{plural}: {names}.",
            code="missing_required_parameter",
            param=missing[0],
        )
    if unknown:
        raise LineRefused(f"Unknown parameter: {shown(unknown[0])}.", param=unknown[0][:CUSTOM_ID_CHARS_MAX])
    custom_id = _read_custom_id(values["custom_id"])
    if values["method"] != "POST":
        raise LineRefused(
            f"The method of a request must be 'POST', but got {shown(values['method'])} instead.",
            param="method",
        )
    if values["url"] != endpoint:
        raise LineRefused(
            "The URL provided for this request does not match the batch endpoint. "
            f"It is {shown(values['url'])}, and it must be '{endpoint}'.",
            code="invalid_url",
            param="url",
        )
    body = values["body"]
    if type(body) is not dict:
        raise LineRefused(
            f"Invalid type for 'body': expected an object, but got {kind_of(body)} instead.", param="body"
        )
    return Request(custom_id, body)


def _read_object(line: PhysicalLine) -> dict[str, Any]:
    """The line's JSON object: no duplicate keys, no NaN, no lone surrogates, bounded in size and depth."""
    if line.data is None:
        raise LineRefused(
            f"This line is {line.size} bytes long; the limit is {LINE_BYTES_MAX} bytes. Split the request."
        )
    try:
        value = jiter.from_json(line.data, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise LineRefused(
            f"This line is not parseable as valid JSON. {_reason(line.data, error)}", code="invalid_json_line"
        ) from error
    if type(value) is not dict:
        raise LineRefused(f"Each line must be a JSON object, but this one is {kind_of(value)}.")
    # Counting brackets settles nearly every line; only the others are walked.
    brackets = line.data.count(b"{") + line.data.count(b"[")
    if brackets > JSON_DEPTH_MAX and depth_of(value) > JSON_DEPTH_MAX:
        raise LineRefused(
            f"The JSON of this line is nested deeper than the limit of {JSON_DEPTH_MAX} levels."
        )
    return value


def _reason(data: bytes, error: ValueError) -> str:
    """Why the parser gave up, in words that help."""
    if data.startswith(UTF16_MARKS) or b"\0" in data:
        return "It looks like UTF-16: save the file as UTF-8."
    try:
        data.decode()
    except UnicodeDecodeError as undecodable:
        return f"It is not UTF-8: byte {undecodable.start + 1} of the line cannot be read. Save the file as UTF-8."
    return f"{str(error).replace('line 1 column', 'column').capitalize()}."


def _read_custom_id(value: object) -> str:
    """A custom_id that can stand in files, pages and logs."""
    if type(value) is not str:
        raise LineRefused(
            f"Invalid type for 'custom_id': expected a string, but got {kind_of(value)} instead.",
            param="custom_id",
        )
    if not 1 <= len(value) <= CUSTOM_ID_CHARS_MAX:
        raise LineRefused(
            f"Invalid 'custom_id': expected 1 to {CUSTOM_ID_CHARS_MAX} characters, but got {len(value)} instead.",
            param="custom_id",
        )
    if not value.isprintable() and any(unicodedata.category(char) == "Cc" for char in value):
        raise LineRefused("Invalid 'custom_id': control characters are not allowed.", param="custom_id")
    return value
