"""What every answer carries and what none does, whatever the route and the method."""

import re
from collections.abc import Iterator

import httpx
import pytest

from api.app import create_app
from tests.api.conftest import Customer

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "ODD")
RULES = sorted(
    (re.sub("<[^>]+>", "none", rule.rule), frozenset(rule.methods or ()))
    for rule in create_app().url_map.iter_rules()
)


def everywhere(ann: Customer, **headers: str) -> Iterator[tuple[str, str, httpx.Response]]:
    """Each route asked with each method: method, path, answer."""
    for path, _ in RULES:
        for method in METHODS:
            yield method, path, ann.http.request(method, path, headers=headers)


def test_no_answer_is_sniffed_redirects_or_lets_other_origins_in(ann: Customer) -> None:
    """Nosniff and a request id on all, no redirect, no CORS header whatever the origin; an error is JSON."""
    for method, path, answer in everywhere(
        ann, Origin="https://evil.example", **{"Access-Control-Request-Method": "DELETE"}
    ):
        where = f"{method} {path} {answer.status_code}"
        assert answer.headers["x-content-type-options"] == "nosniff", where
        assert answer.headers["x-request-id"].startswith("req_"), where
        assert not 300 <= answer.status_code < 400, where
        assert not [name for name in answer.headers if name.startswith("access-control")], where
        assert "set-cookie" not in answer.headers, where
        assert "location" not in answer.headers, where
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == "application/json", where


@pytest.mark.parametrize("path", sorted({path for path, _ in RULES}))
def test_a_slash_more_is_another_address(ann: Customer, path: str) -> None:
    """A trailing slash or a doubled one is a 404, never a redirect that drops the token or the body."""
    # Of slashes in front the server leaves one, which is harmless; those within the path are ours.
    for wrong in {f"{path}/", f"{path}//", re.sub("(?<!^)/", "//", path)} - {path}:
        answer = ann.http.get(ann.http.base_url.copy_with(raw_path=wrong.encode()))
        # A model's id may hold slashes.
        assert answer.json()["error"]["code"] in {"unknown_url", "model_not_found"}, wrong
        assert answer.status_code == 404


def test_methods_that_are_not_taken_are_named(ann: Customer) -> None:
    """OPTIONS and odd methods are a 405 with those that are taken; HEAD is taken wherever GET is."""
    for path, methods in RULES:
        for method in ("OPTIONS", "PATCH", "ODD"):
            answer = ann.http.request(method, path)
            assert answer.json()["error"]["code"] == "method_not_allowed"
            allowed = set(answer.headers["allow"].split(", "))
            assert allowed >= set(methods)
            assert ("HEAD" in allowed) is ("GET" in allowed)


def test_head_is_get_without_the_body(ann: Customer, qualified: None) -> None:
    """The same status and headers, for objects, lists, downloads and refusals alike."""
    file_id = ann.file()
    batch_id = ann.batch(file_id)["id"]
    fleeting = {"x-request-id", "openai-processing-ms", "date", "x-ratelimit-remaining-requests"}
    fleeting |= {"x-ratelimit-reset-requests", "content-length"}
    for path in (
        f"/v1/files/{file_id}", f"/v1/files/{file_id}/content", f"/v1/batches/{batch_id}", "/v1/models", "/v1/files/none",
        "/v1/nothing", "/gridline/v1/account", "/healthz", "/docs", "/openapi.json",
    ):  # fmt: skip
        got, head = ann.http.get(path), ann.http.head(path)
        assert head.content == b"", path
        assert head.status_code == got.status_code, path
        shown = [{k: v for k, v in one.headers.items() if k not in fleeting} for one in (got, head)]
        assert shown[0] == shown[1], path
        if path != "/gridline/v1/account":
            assert head.headers["content-length"] == got.headers["content-length"], path
