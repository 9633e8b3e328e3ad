"""One line's JSON, keys and custom_id."""

import json
from typing import Any

import pytest

from gridline.lines.errors import LineRefused
from gridline.lines.reading import PhysicalLine
from gridline.lines.requests import Request, read_request

URL = "/v1/chat/completions"


def read(data: object) -> Request:
    """Read one line, given as bytes or as a value."""
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return read_request(PhysicalLine(1, len(raw), raw), URL)


def refusal(data: object) -> LineRefused:
    """The refusal of one line."""
    with pytest.raises(LineRefused) as caught:
        read(data)
    return caught.value


def line(**over: Any) -> dict[str, Any]:
    """A good line with keys replaced."""
    return {"custom_id": "a", "method": "POST", "url": URL, "body": {"model": "m"}, **over}


def test_good_line() -> None:
    """custom_id and body come through as they are; null keys count as absent."""
    assert read(line(metadata=None)) == Request("a", {"model": "m"})


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_case_1_utf16_is_named(encoding: str) -> None:
    """A UTF-16 line is refused by the name of its encoding, never guessed."""
    found = refusal(json.dumps(line()).encode(encoding))
    assert found.code == "invalid_json_line"
    assert "UTF-16" in found.message


def test_case_1_other_encodings_are_named() -> None:
    """A line that is not UTF-8 is refused with the place."""
    found = refusal(json.dumps(line(custom_id="€"), ensure_ascii=False).encode("cp1252"))
    assert (found.code, "not UTF-8: byte 16" in found.message) == ("invalid_json_line", True)


@pytest.mark.parametrize("value", [[1, 2, 3], "hello", None, 7, True])
def test_case_4_not_an_object(value: object) -> None:
    """JSON that is not an object is refused as what it is."""
    assert "must be a JSON object" in refusal(value).message


@pytest.mark.parametrize("body", ["x", [], 3, True])
def test_case_4_body_not_an_object(body: object) -> None:
    """A body that is not an object is refused at body."""
    assert refusal(line(body=body)).param == "body"


def test_case_5_missing_keys_are_all_named() -> None:
    """A line of another vendor's shape is told every key it lacks."""
    found = refusal({"custom_id": "c1", "params": {"model": "m"}})
    assert found.code == "missing_required_parameter"
    assert found.message == "Missing required parameters: 'method', 'url', 'body'."
    assert found.param == "method"


def test_missing_custom_id_in_openai_words() -> None:
    """One missing key reads exactly as OpenAI's."""
    found = refusal({key: value for key, value in line().items() if key != "custom_id"})
    assert (found.message, found.param) == ("Missing required parameter: 'custom_id'.", "custom_id")


def test_null_custom_id_is_missing() -> None:
    """Null counts as absent."""
    assert refusal(line(custom_id=None)).code == "missing_required_parameter"


@pytest.mark.parametrize("custom_id", ["", 1, 1.5, [], {}, True, "x" * 513])
def test_case_8_unusable_custom_id(custom_id: object) -> None:
    """Empty, too long and other than text is refused at custom_id."""
    found = refusal(line(custom_id=custom_id))
    assert (found.code, found.param) == ("invalid_request", "custom_id")


@pytest.mark.parametrize("custom_id", ["r1\r\nX-Injected: y", "\u0007", "\u0085", "a\tb", "\x7f"])
def test_case_9_control_characters(custom_id: str) -> None:
    """Control characters never get into files, pages and logs."""
    assert "control characters" in refusal(line(custom_id=custom_id)).message


@pytest.mark.parametrize("custom_id", ["a" * 512, "é" * 512, "=cmd|calc", "a ", "\u2028", "😀"])
def test_case_9_everything_else_passes(custom_id: str) -> None:
    """Any other text up to the limit comes through character by character."""
    assert read(line(custom_id=custom_id)).custom_id == custom_id


@pytest.mark.parametrize(
    "data",
    [
        b'{"custom_id":"a","custom_id":"b","method":"POST","url":"/v1/chat/completions","body":{}}',
        b'{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"n":1,"n":2}}',
        b'{"custom_id":"a","body":{"temperature":NaN}}',
        b'{"custom_id":"a","body":{"temperature":-Infinity}}',
        b'{"custom_id":"ok \\ud83d"}',
        b'{"custom_id":"a"} {"custom_id":"b"}',
        b"{'custom_id':'a'}",
        b'{"custom_id":"a"',
        b'{"a":' + b"1" * 5000 + b"}",
        b"\xef\xbb\xbf{}",
    ],
)
def test_case_10_strict_json(data: bytes) -> None:
    """Duplicate keys, NaN, lone surrogates and the like are no JSON here."""
    found = refusal(data)
    assert found.code == "invalid_json_line"
    assert found.message.startswith("This line is not parseable as valid JSON.")


@pytest.mark.parametrize("levels", [99, 150, 20_000])
def test_case_11_depth(levels: int) -> None:
    """Deep nesting is refused everywhere alike, and never a crash."""
    text = json.dumps(line()).replace('"m"', "[" * levels + "]" * levels)
    assert refusal(text.encode()).code in {"invalid_request", "invalid_json_line"}


def test_case_11_depth_limit_is_inclusive() -> None:
    """A hundred levels pass: the line, its body, and 98 more."""
    text = json.dumps(line()).replace('"m"', "[" * 98 + "]" * 98)
    assert read(text.encode()).custom_id == "a"


def test_case_12_long_line() -> None:
    """A line over the limit is refused with its size and the limit."""
    with pytest.raises(LineRefused) as caught:
        read_request(PhysicalLine(2, 12_000_000, None), URL)
    assert "12000000 bytes" in caught.value.message
    assert "8388608" in caught.value.message


@pytest.mark.parametrize("method", ["GET", "post", 1])
def test_other_methods(method: object) -> None:
    """A request is a POST."""
    assert refusal(line(method=method)).param == "method"


@pytest.mark.parametrize("url", ["/v1/embeddings", "v1/chat/completions", 5])
def test_other_url(url: object) -> None:
    """The url must be the batch's endpoint; OpenAI's sentence is followed by what was got and what is wanted."""
    found = refusal(line(url=url))
    assert (found.code, found.param) == ("invalid_url", "url")
    assert found.message == (
        "The URL provided for this request does not match the batch endpoint. "
        f"It is {url!r}, and it must be '{URL}'."
    )


def test_unknown_key() -> None:
    """A key beside the four is refused by name, not passed over."""
    assert refusal(line(priority=1)).param == "priority"
