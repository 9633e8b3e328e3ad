"""Facts measured on the SDKs, as requirements: what they retry, obey, send and expect."""

import json
from typing import Any

import pytest

from tests.conformance.batch_service import Service
from tests.conformance.walks import PATHS, complete, scene

FINAL = ("missing_file", "missing_input", "bad_endpoint", "key_reused", "too_large")


def test_case_m1_what_cannot_succeed_is_asked_once(walk: dict[str, Any]) -> None:
    """A 409, 413 or 429 that cannot heal by trying again carries x-should-retry: false, and the SDK asks once."""
    told = [scene(walk, "refusals")[name] for name in FINAL]
    told += [scene(walk, "batches")[name] for name in ("in_use", "cancel_ended")]
    crowd = scene(walk, "crowd").get("refusal")
    told += [crowd] if crowd else []
    for refusal in told:
        assert [one["should_retry"] for one in refusal["attempts"]] == ["false"], refusal


def test_case_m2_retry_after_is_never_more_than_a_minute(walk: dict[str, Any]) -> None:
    """Every Retry-After is between 1 and 60 seconds, so that each SDK obeys it; the limit on open batches has one."""
    given = [one["retry_after"] for one in walk["attempts"] if one["retry_after"]]
    crowd = scene(walk, "crowd").get("refusal")
    if crowd:
        assert crowd["attempts"][0]["retry_after"]
        given += [one["retry_after"] for one in crowd["attempts"]]
    assert all(1 <= int(one) <= 60 for one in given), given


def test_case_m3_a_create_whose_answer_was_lost_makes_one_batch(walk: dict[str, Any]) -> None:
    """The SDK retries a lost create without a key, only with a count of its retries, and gets the first batch."""
    batches = scene(walk, "batches")
    attempts = batches["lost"]["attempts"]
    assert [one["retry_count"] for one in attempts] == ["0", "1"]
    assert [one["idempotency_key"] for one in attempts] == [None, None]
    assert batches["lost_made"] == [batches["lost"]["id"]]


def test_case_m4_calls_answer_long_before_any_time_out(walk: dict[str, Any]) -> None:
    """Uploading, creating and looking answer within seconds, far below every time-out of the SDKs."""
    files, batches = scene(walk, "files"), scene(walk, "batches")
    assert files["seconds"] < 15
    assert batches["create_seconds"] < 10
    assert batches["look_seconds"] < 5


def test_case_m5_has_more_is_exact(walk: dict[str, Any], service: Service) -> None:
    """A full last page says has_more: false, past the end comes an empty page, so every SDK's iteration ends."""
    listed = scene(walk, "batches")["listed"]
    assert listed["pages"] <= len(listed["ids"]) // 2 + 2
    first, second = (service.file([service.chat_line(name)]) for name in "ab")
    after_first = service.http.get("/files", params={"order": "asc", "after": first, "limit": 1}).json()
    assert ([one["id"] for one in after_first["data"]], after_first["has_more"]) == ([second], False)
    past = service.http.get("/files", params={"order": "asc", "after": second, "limit": 1}).json()
    assert (past["data"], past["has_more"]) == ([], False)


def test_case_m6_odd_file_names_arrive_as_they_are(walk: dict[str, Any]) -> None:
    """A name with accents, spaces and quotes is kept, and no content type of the part is asked for."""
    files = scene(walk, "files")
    assert files["uploaded"]["bytes"]["filename"] == 'réq "x".jsonl'
    assert files["retrieved"]["filename"] == 'réq "x".jsonl'


def test_case_m7_what_only_python_calls_json_is_refused(service: Service) -> None:
    """NaN, Infinity, numbers beyond a float, keys given twice, lone surrogates and control characters are no JSON."""
    good = json.dumps(service.chat_line("good"))
    bad = {
        "NaN": good.replace('"max_tokens": 4', '"temperature": NaN'),
        "Infinity": good.replace('"max_tokens": 4', '"temperature": -Infinity'),
        "beyond a float": good.replace('"max_tokens": 4', '"temperature": 1e999'),
        "two ids": good.replace('"custom_id": "good"', '"custom_id": "x", "custom_id": "y"'),
        "two models": good.replace('"body": {', '"body": {"model": "other", '),
        "lone surrogate": good.replace("Say ok", "Say \\ud83d"),
        "control character": good.replace("Say ok", "Say \u0001"),
    }
    lines = [line.replace('"good"', f'"bad-{number}"') for number, line in enumerate(bad.values())]
    errors = service.expect_fail([good, *lines])
    assert [one["line"] for one in errors] == list(range(2, len(bad) + 2))
    codes = {name: one["code"] for name, one in zip(bad, errors, strict=True)}
    assert set(codes.values()) <= {"invalid_json_line", "invalid_request"}, codes


def test_case_m8_a_window_that_the_types_do_not_know(walk: dict[str, Any], service: Service) -> None:
    """The longest window, which the SDK's types need not know, is taken and echoed, and the batch expires so much later."""
    window = service.dialect.windows[-1]
    batch = scene(walk, "batches")["embeddings"]["batch"]
    assert batch["completion_window"] == window
    assert batch["expires_at"] == batch["created_at"] + int(window.removesuffix("h")) * 3600


@pytest.mark.parametrize("name", ["created", "cancelling", "cancelled"])
def test_case_m9_every_field_of_the_types_is_sent(walk: dict[str, Any], name: str) -> None:
    """Every field that the SDK's types promise is there at every moment of a batch; usage is whole or null."""
    batch = complete(scene(walk, "batches")[name])
    assert set(batch) == set(PATHS["batch"])
    assert isinstance(batch["usage.input_tokens_details.cached_tokens"], int)
    assert isinstance(batch["usage.output_tokens_details.reasoning_tokens"], int)
    assert scene(walk, "files")["uploaded"]["path"]["status"] in {"uploaded", "processed", "error"}
