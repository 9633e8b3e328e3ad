"""Rows 32 to 36: what a create takes, what dooms a batch, and what a failed one leaves."""

import secrets
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.conformance.batch_service import EMBEDDINGS_ENDPOINT, Service, refused
from tests.conformance.watching import by_line, failures, refusals
from tests.stack import Stack

WRONG_URLS = (
    "/v1/embeddings",
    "/chat/completions",
    "/v1/chat/completions/",
    "/V1/chat/completions",
    "https://api.openai.com/v1/chat/completions",
    "/v1/../v1/chat/completions",
)
UNSUPPORTED: dict[str, Any] = {
    "stream_options": {"include_usage": True},
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "functions": [{"name": "f"}],
    "function_call": "auto",
    "logit_bias": {"50256": -100},
    "service_tier": "flex",
    "prediction": {"type": "content", "content": "a"},
    "modalities": ["text"],
    "audio": {"voice": "alloy", "format": "mp3"},
    "reasoning_effort": "low",
    "web_search_options": {},
    "metadata": {"a": "b"},
    "top_k": 5,
    "no_such_key": 1,
}


def test_case_32_urls_and_methods_that_do_not_fit(service: Service) -> None:
    """A line whose url or method is not exactly the batch's is refused with what it got and what is wanted."""
    lines = [service.chat_line(f"u{number}") | {"url": url} for number, url in enumerate(WRONG_URLS)]
    lines += [service.chat_line(method) | {"method": method} for method in ("post", "GET")]
    errors = by_line(service.expect_fail(lines))
    assert sorted(errors) == list(range(1, len(lines) + 1))
    for number, url in enumerate(WRONG_URLS, 1):
        assert (errors[number]["code"], errors[number]["param"]) == ("invalid_url", "url")
        assert f"'{url}'" in errors[number]["message"]
        assert "'/v1/chat/completions'" in errors[number]["message"]
    for number, method in ((len(lines) - 1, "post"), (len(lines), "GET")):
        assert errors[number]["param"] == "method"
        assert f"'{method}'" in errors[number]["message"]
        assert "'POST'" in errors[number]["message"]


def test_case_32_endpoints_that_are_not_served(service: Service) -> None:
    """An endpoint that is not served is a 400 at create that lists those that are."""
    file_id = service.file([service.chat_line("a")])
    strange = {"/v1/responses", "/v1/nothing", "/chat/completions", "/v1/chat/completions/", ""}
    for endpoint in sorted(strange.difference(service.dialect.endpoints)):
        error = refused(service.create(file_id, endpoint), 400, code="invalid_value", param="endpoint")
        assert EMBEDDINGS_ENDPOINT in error["message"]
    refused(service.create(file_id, None), 400, param="endpoint")
    refused(service.create(file_id, 7), 400, code="invalid_type", param="endpoint")


def test_case_33_unsupported_parameters(service: Service) -> None:
    """Streaming, tools and every other key outside the list are refused by line and name; false and null pass."""
    unsupported = [{key: value} for key, value in UNSUPPORTED.items()]
    streamed, *others = refusals(service, [{"stream": True}, *unsupported])
    assert (streamed["code"], streamed["param"]) == ("streaming_unsupported", "body.stream")
    for key, error in zip(UNSUPPORTED, others, strict=True):
        assert (error["code"], error["param"]) == ("invalid_request", f"body.{key}")
        assert f"'{key}'" in error["message"]
    passing: list[dict[str, Any]] = [
        {"stream": False},
        {"stream": None},
        {"store": False},
        dict.fromkeys(UNSUPPORTED),
    ]
    ended = service.run([service.chat_line(str(number), **body) for number, body in enumerate(passing)])
    assert len(ended.out) == len(passing)


def test_case_33_stored_responses(service: Service) -> None:
    """`store: true` is never ignored: its file fails at validation, or where the dialect says so the line alone."""
    lines = [service.chat_line("stored", store=True), service.chat_line("good")]
    if service.dialect.storing_fails == "file":
        (error,) = service.expect_fail(lines)
        assert (error["line"], error["code"], error["param"]) == (1, "invalid_request", "body.store")
        return
    ended = service.run(lines)
    assert failures(ended) == {"stored": "permission_denied"}
    assert [one["custom_id"] for one in ended.out] == ["good"]


@pytest.mark.parametrize("metadata", [
    {"k" * 64: "v", "long": "v" * 512, "emoji": "\U0001f600" * 512, **{f"k{n}": "" for n in range(13)}},
    {},
    None,
], ids=["full", "empty", "null"])  # fmt: skip
def test_case_34_metadata_within_its_limits(service: Service, metadata: dict[str, str] | None) -> None:
    """16 pairs, keys of 64 and values of 512 characters (not bytes) come back verbatim wherever the batch shows."""
    bad = [service.chat_line("a", n=0)]
    batch = service.created(bad, metadata=metadata)
    cancelled = service.http.post(f"/batches/{batch['id']}/cancel")
    listed = service.http.get("/batches", params={"limit": 100}).json()["data"]
    shown = [batch, service.finished(batch["id"]), *(one for one in listed if one["id"] == batch["id"])]
    shown += [cancelled.json()] if cancelled.status_code == 200 else []
    assert len(shown) >= 3
    assert all(one["metadata"] == metadata for one in shown), shown


def test_case_34_metadata_outside_its_limits(service: Service) -> None:
    """Metadata that is too much or of another type is a 400 that names the place, and nothing is made."""
    file_id = service.file([service.chat_line("a")])
    outside: list[Any] = [
        {f"k{number}": "v" for number in range(17)}, {"k" * 65: "v"}, {"k": "v" * 513},
        "x=y", [], {"a": 1}, {"a": None}, {"tags": ["x"]}, {"a": {"b": "c"}}, {"a": True},
    ]  # fmt: skip
    for metadata in outside:
        error = refused(service.create(file_id, metadata=metadata), 400)
        assert error["param"].partition(".")[0] == "metadata", error
        assert error["code"], error
    batches = service.http.get("/batches", params={"limit": 100}).json()["data"]
    assert [one for one in batches if one["input_file_id"] == file_id] == []


def test_case_35_doomed_creates_say_so(service: Service) -> None:
    """What is known at once is a 4xx at create; the rest fails within seconds, each reason with its line."""
    overlong = service.chat_line("big", messages=[{"role": "user", "content": "word " * 9_000}])
    refused_line = service.created([overlong])
    errors = service.expect_fail([service.chat_line("a"), service.chat_line("b", temperature=9)], seconds=30)
    assert [(one["line"], one["param"]) for one in errors] == [(2, "body.temperature")]
    error_file = service.finished(refused_line["id"])["error_file_id"]
    refused(service.create(error_file), 400, param="input_file_id")
    deleted = service.file([service.chat_line("a")])
    assert service.http.delete(f"/files/{deleted}").json()["deleted"] is True
    refused(service.create(deleted), 404, param="input_file_id")
    refused(service.create("file-does-not-exist"), 404, param="input_file_id")
    tuning = service.upload(b'{"messages": []}\n', purpose="fine-tune")
    if tuning.status_code == 200:
        refused(service.create(tuning.json()["id"]), 400, param="input_file_id")
    else:
        refused(tuning, 400, param="purpose")


def test_case_35_too_little_credit(operator: Stack, service: Service) -> None:
    """A 24h batch that the credit does not cover fails within seconds with the sums, and the balance is untouched."""
    poor = operator.customer(f"conformance-poor-{secrets.token_hex(4)}", credits_="0.000001")
    batch = poor.create([service.chat_line("a", max_tokens=1_000)])
    ended = poor.finished(batch.id, seconds=60)
    assert ended.status == "failed"
    assert ended.failed_at is not None
    (error,) = ended.errors.data
    assert (error.code, error.line) == ("insufficient_quota", None)
    assert "0.000001" in error.message
    balance = poor.get("/account")["balance"]
    assert (Decimal(balance["available"]), Decimal(balance["held"])) == (Decimal("0.000001"), Decimal(0))


def test_case_36_failed_batches_free_their_slots(fresh: Callable[[], Service]) -> None:
    """Failed batches take no open slot, and cancelling one is a 409 that changes nothing and invites no retry."""
    customer = fresh()
    bad = customer.file([customer.chat_line("a", n=0)])
    made = [customer.create(bad) for _ in range(3)]
    assert [one.status_code for one in made] == [200, 200, 429]
    refused(made[2], 429, code="limit_exceeded")
    failed = [customer.finished(one.json()["id"]) for one in made[:2]]
    assert [one["status"] for one in failed] == ["failed", "failed"]
    third = customer.create(bad)
    assert third.status_code == 200, third.text
    answer = customer.http.post(f"/batches/{failed[0]['id']}/cancel")
    error = refused(answer, 409)
    assert "failed" in error["message"]
    assert answer.headers["x-should-retry"] == "false"
    assert customer.batch(failed[0]["id"]) == failed[0]
    assert customer.finished(third.json()["id"])["status"] == "failed"
