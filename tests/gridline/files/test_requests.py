"""Bodies of the Uploads API: what passes, and the name of what does not."""

import pytest

from gridline.errors import GridlineError
from gridline.files.requests import CompleteRequest, UploadRequest, parse_complete, parse_upload
from gridline.profiles.profile import load

GOOD = {"filename": "r.jsonl", "purpose": "batch", "bytes": 100, "mime_type": "application/jsonl"}
HOUR = {"anchor": "created_at", "seconds": 3600}


def test_good_bodies_are_read() -> None:
    """Required keys alone, all keys, nulls for the optional ones, and sizes to the cap."""
    assert parse_upload(GOOD, load("gridline")) == UploadRequest("r.jsonl", "batch", 100, "application/jsonl")
    assert parse_upload({**GOOD, "expires_after": HOUR}, load("gridline")).expires_after_seconds == 3600
    assert parse_upload({**GOOD, "expires_after": None, "bytes": 1}, load("gridline")).bytes == 1
    assert (
        parse_upload({**GOOD, "bytes": 200_000_000, "mime_type": ""}, load("gridline")).bytes == 200_000_000
    )
    assert parse_upload({**GOOD, "mime_type": "x" * 255}, load("gridline")).mime_type == "x" * 255
    assert parse_complete({"part_ids": ["b", "a"]}) == CompleteRequest(("b", "a"))
    assert parse_complete({"part_ids": ["a"], "md5": None}).md5 is None
    assert parse_complete({"part_ids": ["a"], "md5": "AB" * 16}).md5 == "ab" * 16
    assert len(parse_complete({"part_ids": [str(one) for one in range(1000)]}).part_ids) == 1000


@pytest.mark.parametrize("key", GOOD)
@pytest.mark.parametrize("how", ["absent", "null"])
def test_each_required_key_is_named(key: str, how: str) -> None:
    """A create without one of its four keys says which."""
    body = {one: value for one, value in GOOD.items() if one != key} | ({key: None} if how == "null" else {})
    with pytest.raises(GridlineError) as caught:
        parse_upload(body, load("gridline"))
    assert (caught.value.code, caught.value.param) == ("missing_required_parameter", key)


@pytest.mark.parametrize(
    ("given", "code", "param"),
    [
        ({"account_id": "acct_1"}, "unknown_parameter", "account_id"),
        ({"filename": 1}, "invalid_type", "filename"),
        ({"filename": "r.txt"}, "invalid_file_format", "filename"),
        ({"filename": "x" * 250 + ".jsonl"}, "invalid_file_format", "filename"),
        ({"filename": "a\0.jsonl"}, "invalid_file_format", "filename"),
        ({"purpose": "fine-tune"}, "invalid_value", "purpose"),
        ({"purpose": ["batch"]}, "invalid_type", "purpose"),
        ({"bytes": "100"}, "invalid_type", "bytes"),
        ({"bytes": 100.0}, "invalid_type", "bytes"),
        ({"bytes": True}, "invalid_type", "bytes"),
        ({"bytes": 0}, "integer_below_min_value", "bytes"),
        ({"bytes": -(10**4000)}, "integer_below_min_value", "bytes"),
        ({"bytes": 200_000_001}, "file_too_large", "bytes"),
        ({"bytes": 10**4000}, "file_too_large", "bytes"),
        ({"mime_type": 7}, "invalid_type", "mime_type"),
        ({"mime_type": "x" * 256}, "string_above_max_length", "mime_type"),
        ({"mime_type": "text/plain\r\nX: y"}, "invalid_value", "mime_type"),
        ({"mime_type": "a\0b"}, "invalid_value", "mime_type"),
        ({"mime_type": "a\x7fb"}, "invalid_value", "mime_type"),
        ({"expires_after": 3600}, "invalid_type", "expires_after"),
        ({"expires_after": {"anchor": "created_at"}}, "missing_required_parameter", "expires_after.seconds"),
        ({"expires_after": {**HOUR, "anchor": "now"}}, "invalid_value", "expires_after.anchor"),
        ({"expires_after": {**HOUR, "seconds": 3599}}, "integer_below_min_value", "expires_after.seconds"),
        ({"expires_after": {**HOUR, "more": 1}}, "unknown_parameter", "expires_after.more"),
    ],
)
def test_a_wrong_create_is_refused_by_name(given: dict[str, object], code: str, param: str) -> None:
    """Each wrong value has OpenAI's code and names its parameter."""
    with pytest.raises(GridlineError) as caught:
        parse_upload({**GOOD, **given}, load("gridline"))
    assert (caught.value.code, caught.value.param) == (code, param)


def test_a_size_over_the_cap_names_the_cap() -> None:
    """The refusal of a file that would be too large has the dialect's cap, and is a 413."""
    with pytest.raises(GridlineError) as caught:
        parse_upload({**GOOD, "bytes": 100_000_001}, load("gridport"))
    assert caught.value.status == 413
    assert caught.value.limit == {"name": "file_bytes", "limit": 100_000_000, "unit": "bytes"}


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ([], "invalid_type", None),
        ({}, "missing_required_parameter", "part_ids"),
        ({"part_ids": None}, "missing_required_parameter", "part_ids"),
        ({"part_ids": "part_1"}, "invalid_type", "part_ids"),
        ({"part_ids": []}, "empty_array", "part_ids"),
        ({"part_ids": [str(one) for one in range(1001)]}, "array_above_max_length", "part_ids"),
        ({"part_ids": ["a", 2]}, "invalid_type", "part_ids[1]"),
        ({"part_ids": ["a", None]}, "invalid_type", "part_ids[1]"),
        ({"part_ids": ["a", "b", "a"]}, "invalid_value", "part_ids"),
        ({"part_ids": ["a"], "md5": 1}, "invalid_type", "md5"),
        ({"part_ids": ["a"], "md5": "xyz"}, "invalid_value", "md5"),
        ({"part_ids": ["a"], "md5": "0" * 33}, "invalid_value", "md5"),
        ({"part_ids": ["a"], "sha256": "0"}, "unknown_parameter", "sha256"),
    ],
)
def test_a_wrong_completion_is_refused_by_name(body: object, code: str, param: str | None) -> None:
    """Each wrong value has OpenAI's code and names its parameter."""
    with pytest.raises(GridlineError) as caught:
        parse_complete(body)
    assert (caught.value.code, caught.value.param) == (code, param)
