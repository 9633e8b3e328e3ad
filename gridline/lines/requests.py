"""One line read strictly: JSON, the four keys around a request, its custom_id. Bodies are read elsewhere."""

import unicodedata
from typing import Any, NamedTuple

import jiter

from gridline.limits import CUSTOM_ID_CHARS_MAX, JSON_DEPTH_MAX, LINE_BRACKETS_MAX, LINE_BYTES_MAX
from gridline.lines.errors import LineRefused
from gridline.lines.fields import depth_of, kind_of, shown
from gridline.lines.reading import BOM, PhysicalLine

KEYS = ("custom_id", "method", "url", "body")
KEY_SET = frozenset(KEYS)

TOO_DEEP = "recursion limit exceeded"
"""How the parser's error begins where its own limit, which is above ours, was met."""
NESTED = f"The JSON of this line is nested deeper than the limit of {JSON_DEPTH_MAX} levels."
REASON_CHARS_MAX = 120
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Request(NamedTuple):
    """What every line says, whatever its endpoint."""

    custom_id: str
    body: dict[str, Any]


def read_request(line: PhysicalLine, endpoint: str) -> Request:
    """The request of a line for this endpoint; its body's own rules are not looked at yet.

    Raises:
        LineRefused: the first rule that the line breaks.
    """
    values = _read_object(line)
    custom_id, method, url, body = map(values.get, KEYS)
    if len(values) != len(KEYS) or custom_id is None or method is None or url is None or body is None:
        _check_keys(values)
    custom_id = _read_custom_id(custom_id)
    if method != "POST":
        raise LineRefused(
            f"The method of a request must be 'POST', but got {shown(method)} instead.",
            param="method",
        )
    if url != endpoint:
        raise LineRefused(
            "The URL provided for this request does not match the batch endpoint. "
            f"It is {shown(url)}, and it must be '{endpoint}'.",
            code="invalid_url",
            param="url",
        )
    if type(body) is not dict:
        raise LineRefused(
            f"Invalid type for 'body': expected an object, but got {kind_of(body)} instead.", param="body"
        )
    return Request(custom_id, body)


def _check_keys(values: dict[str, Any]) -> None:
    """Refuse missing and unknown keys; null counts as absent."""
    missing = [key for key in KEYS if values.get(key) is None]
    if missing:
        names = ", ".join(f"'{key}'" for key in missing)
        plural = "s" if len(missing) > 1 else ""
        raise LineRefused(
            f"Missing required parameter{plural}: {names}.",
            code="missing_required_parameter",
            param=missing[0],
        )
    unknown = next((key for key, value in values.items() if key not in KEY_SET and value is not None), None)
    if unknown is not None:
        raise LineRefused(f"Unknown parameter: {shown(unknown)}.", param=unknown)


def _read_object(line: PhysicalLine) -> dict[str, Any]:
    """The line's JSON object: no duplicate keys, no NaN, no lone surrogates, bounded in size and depth."""
    if line.data is None:
        raise LineRefused(
            f"This line is {line.size} bytes long; the limit is {LINE_BYTES_MAX} bytes. Split the request."
        )
    if (
        len(line.data) > LINE_BRACKETS_MAX
        and line.data.count(b"{") + line.data.count(b"[") > LINE_BRACKETS_MAX
    ):
        # Two bytes of JSON may become seventy of memory.
        raise LineRefused(
            f"This line holds more than the limit of {LINE_BRACKETS_MAX} opening brackets. Split the request."
        )
    try:
        value = jiter.from_json(line.data, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        if str(error).startswith(TOO_DEEP):
            raise LineRefused(NESTED) from error
        raise LineRefused(
            f"This line is not parseable as valid JSON. {_reason(line.data, str(error))}",
            code="invalid_json_line",
        ) from error
    if type(value) is not dict:
        raise LineRefused(f"Each line must be a JSON object, but this one is {kind_of(value)}.")
    if _many_brackets(line.data) and depth_of(value) > JSON_DEPTH_MAX:
        raise LineRefused(NESTED)
    return value


def _many_brackets(data: bytes) -> bool:
    """Whether there are enough brackets for nesting too deep: nearly every line has few, and is not walked.

    Looking for the next one is as fast as memory allows; ``count`` would take longer than parsing the line.
    """
    left = JSON_DEPTH_MAX
    for bracket in (b"{", b"["):
        place = data.find(bracket)
        while place >= 0:
            left -= 1
            if left < 0:
                return True
            place = data.find(bracket, place + 1)
    return False


def _reason(data: bytes, error: str) -> str:
    """Why the parser gave up, in words that help and repeat nothing of the line but a key's name."""
    if data.startswith(UTF16_MARKS) or data.count(0) > len(data) // 4:
        return "It looks like UTF-16: save the file as UTF-8."
    try:
        data.decode()
    except UnicodeDecodeError as undecodable:
        return f"It is not UTF-8: byte {undecodable.start + 1} of the line cannot be read. Save the file as UTF-8."
    if data.startswith(BOM):
        return "It begins with a byte order mark, which may only stand at the start of the file."
    if b"\r" in data and error.startswith("trailing characters"):
        return "It holds a carriage return: end each line with a line feed."
    said = error.replace("line 1 column", "column")
    if len(said) > REASON_CHARS_MAX:
        # The name of a key that stands twice may be of any length.
        said = f"{said[:REASON_CHARS_MAX]}… {said[said.rindex('at column') :]}"
    return f"{said[0].upper()}{said[1:]}."


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
