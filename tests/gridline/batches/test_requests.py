"""What the body of a create may hold."""

from typing import Any

import pytest

from gridline.batches.requests import CreateRequest, parse_create
from gridline.errors import InvalidRequest
from gridline.profiles.profile import load

PROFILE = load("gridline")
GOOD: dict[str, Any] = {
    "input_file_id": "file-1",
    "endpoint": "/v1/chat/completions",
    "completion_window": "24h",
}


def refusal(body: object) -> tuple[str | None, str | None]:
    """The code and the parameter that a body is refused with."""
    with pytest.raises(InvalidRequest) as caught:
        parse_create(body, PROFILE)
    return caught.value.code, caught.value.param


def test_a_plain_create_is_taken() -> None:
    """The three required keys are enough; null counts as absent."""
    wanted = CreateRequest("file-1", "/v1/chat/completions", "24h", None, None)
    assert parse_create(GOOD, PROFILE) == wanted
    assert parse_create({**GOOD, "metadata": None, "output_expires_after": None}, PROFILE) == wanted


def test_everything_that_may_be_given_is_kept() -> None:
    """72h, metadata at its limits, counted in characters, and an expiry come through as they are."""
    metadata = {"k" * 64: "😀" * 512, "": ""} | {f"k{n}": "v" for n in range(14)}
    body = {
        **GOOD,
        "endpoint": "/v1/embeddings",
        "completion_window": "72h",
        "metadata": metadata,
        "output_expires_after": {"anchor": "created_at", "seconds": 3600},
    }
    assert parse_create(body, PROFILE) == CreateRequest("file-1", "/v1/embeddings", "72h", metadata, 3600)
    assert parse_create({**GOOD, "metadata": {}}, PROFILE).metadata == {}


@pytest.mark.parametrize("body", [None, [], "x", 7, True])
def test_a_body_that_is_no_object_is_refused(body: object) -> None:
    """JSON of another kind is a 400 that says so."""
    assert refusal(body) == ("invalid_type", None)


@pytest.mark.parametrize("key", list(GOOD))
def test_each_required_key_is_named_when_missing_or_null(key: str) -> None:
    """Absent and null get OpenAI's code and the key's name."""
    assert refusal({k: v for k, v in GOOD.items() if k != key}) == ("missing_required_parameter", key)
    assert refusal({**GOOD, key: None}) == ("missing_required_parameter", key)
    assert refusal({**GOOD, key: 7}) == ("invalid_type", key)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("endpoint", "/v1/responses"),
        ("endpoint", "/v1/chat/completions/"),
        ("endpoint", "x" * 100_000),
        ("completion_window", "48h"),
        ("completion_window", "24H"),
    ],
)
def test_other_endpoints_and_windows_are_refused(key: str, value: str) -> None:
    """Only the dialect's own values pass, and the refusal stays short."""
    with pytest.raises(InvalidRequest) as caught:
        parse_create({**GOOD, key: value}, PROFILE)
    assert (caught.value.code, caught.value.param) == ("invalid_value", key)
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("key", ["status", "account_id", "stream", "x" * 100_000])
def test_an_unknown_key_is_refused_by_name(key: str) -> None:
    """Nothing is silently ignored, and nobody sets what is ours to set."""
    code, param = refusal({**GOOD, key: "x"})
    assert code == "unknown_parameter"
    assert param is not None
    assert key.startswith(param.rstrip("…"))


@pytest.mark.parametrize(
    ("metadata", "code", "param"),
    [
        ("x=y", "invalid_type", "metadata"),
        ([], "invalid_type", "metadata"),
        ({"tags": []}, "invalid_type", "metadata.tags"),
        ({"a": 1}, "invalid_type", "metadata.a"),
        ({"a": None}, "invalid_type", "metadata.a"),
        ({f"k{n}": "v" for n in range(17)}, "object_above_max_properties", "metadata"),
        ({"k" * 65: "v"}, "string_above_max_length", "metadata"),
        ({"a": "v" * 513}, "string_above_max_length", "metadata.a"),
        ({"a": "x\0y"}, "invalid_value", "metadata"),
        ({"x\0y": "a"}, "invalid_value", "metadata"),
    ],
)
def test_metadata_has_rules(metadata: object, code: str, param: str) -> None:
    """16 pairs, keys of 64 and values of 512 characters, strings only."""
    assert refusal({**GOOD, "metadata": metadata}) == (code, param)


def test_the_type_error_reads_as_openais() -> None:
    """The sentence is the one that customers find when they search for it."""
    with pytest.raises(InvalidRequest) as caught:
        parse_create({**GOOD, "metadata": {"tags": ["a"]}}, PROFILE)
    assert caught.value.message == (
        "Invalid type for 'metadata.tags': expected a string, but got an array instead."
    )


@pytest.mark.parametrize(
    ("value", "code", "param"),
    [
        (3600, "invalid_type", "output_expires_after"),
        ({}, "missing_required_parameter", "output_expires_after.anchor"),
        ({"anchor": "created_at"}, "missing_required_parameter", "output_expires_after.seconds"),
        ({"anchor": "uploaded", "seconds": 3600}, "invalid_value", "output_expires_after.anchor"),
        (
            {"anchor": "created_at", "seconds": 3599},
            "integer_below_min_value",
            "output_expires_after.seconds",
        ),
        (
            {"anchor": "created_at", "seconds": 2592001},
            "integer_above_max_value",
            "output_expires_after.seconds",
        ),
        (
            {"anchor": "created_at", "seconds": 10**5000},
            "integer_above_max_value",
            "output_expires_after.seconds",
        ),
        ({"anchor": "created_at", "seconds": True}, "invalid_type", "output_expires_after.seconds"),
        ({"anchor": "created_at", "seconds": "3600"}, "invalid_type", "output_expires_after.seconds"),
        ({"anchor": "created_at", "seconds": 3600, "x": 1}, "unknown_parameter", "output_expires_after.x"),
    ],
)
def test_output_expiry_has_rules(value: object, code: str, param: str) -> None:
    """Anchor and seconds, both required, within an hour and 30 days."""
    assert refusal({**GOOD, "output_expires_after": value}) == (code, param)
