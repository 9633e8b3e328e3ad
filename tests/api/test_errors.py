"""Errors: one JSON shape for every status, and headers that tell an SDK whether trying again helps."""

import httpx
import openai
import pytest
from sqlalchemy.exc import OperationalError

from api.reference.headers import ALWAYS
from gridline.catalog import cards
from gridline.db import work as works
from tests.api.conftest import Customer


def shape(answer: httpx.Response) -> tuple[int, str | None]:
    """Status and code of an error that is shaped as every error is."""
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"].startswith("req_")
    error = answer.json()["error"]
    assert list(error)[:4] == ["message", "type", "param", "code"]
    assert isinstance(error["message"], str)
    return answer.status_code, error["code"]


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/nothing", "/v1/files/", "/v1//files", "/v1/files/a/b", "/V1/files"]
)
def test_an_unknown_address_is_a_404_and_never_a_redirect(ann: Customer, path: str) -> None:
    """No HTML, no redirect that would lose the token."""
    answer = ann.http.get(ann.http.base_url.copy_with(raw_path=path.encode()))
    assert shape(answer) == (404, "unknown_url")


def test_a_wrong_method_is_a_405(ann: Customer) -> None:
    """With the methods that are taken, OPTIONS and odd ones included."""
    for method in ("PUT", "PATCH", "OPTIONS", "ODD"):
        answer = ann.http.request(method, "/v1/batches")
        assert shape(answer) == (405, "method_not_allowed")
        assert "GET" in answer.headers["allow"]


BODIES: dict[str, tuple[bytes, str, int, str]] = {
    "empty": (b"", "application/json", 400, "invalid_json"),
    "not JSON": (b"{", "application/json", 400, "invalid_json"),
    "NaN": (b'{"metadata":{"a":NaN}}', "application/json", 400, "invalid_json"),
    "duplicate key": (b'{"endpoint":1,"endpoint":2}', "application/json", 400, "invalid_json"),
    "lone surrogate": (b'{"endpoint":"\\ud83d"}', "application/json", 400, "invalid_json"),
    "not UTF-8": (b'{"endpoint":"\xff"}', "application/json", 400, "invalid_json"),
    "deep": (b"[" * 20_000 + b"]" * 20_000, "application/json", 400, "invalid_json"),
    "huge number": (
        b'{"endpoint":' + b"1" * 4_000 + b"}",
        "application/json",
        400,
        "missing_required_parameter",
    ),
    "endless number": (b'{"endpoint":' + b"1" * 10_000 + b"}", "application/json", 400, "invalid_json"),
    "a list": (b"[]", "application/json", 400, "invalid_type"),
    "a form": (b"a=b", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
    "too large": (b'{"a":"' + b"x" * 1024 * 1024 + b'"}', "application/json", 413, "request_too_large"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_cannot_be_read_is_refused(ann: Customer, name: str) -> None:
    """Strict JSON of at most 1 MiB, sent as JSON; anything else is a 4xx that is not worth retrying."""
    content, kind, status, code = BODIES[name]
    answer = ann.http.post("/v1/batches", content=content, headers={"Content-Type": kind})
    assert shape(answer) == (status, code)
    assert answer.headers["x-should-retry"] == "false"


def test_the_sdk_sees_type_code_and_param(ann: Customer) -> None:
    """A customer's except clause finds what OpenAI's would give it, and the request id."""
    with pytest.raises(openai.BadRequestError) as caught:
        ann.sdk.batches.create(input_file_id="file-x", endpoint="/v1/moderations", completion_window="24h")
    error = caught.value
    assert (error.code, error.param, error.type) == ("invalid_value", "endpoint", "invalid_request_error")
    assert error.request_id is not None
    assert error.request_id.startswith("req_")


def test_a_bug_of_ours_is_a_500_without_its_insides(
    ann: Customer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The customer gets a request id and no trace; the log gets the trace."""

    def broken(_work: object) -> None:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(cards, "listed", broken)
    answer = ann.http.get("/v1/models")
    assert shape(answer) == (500, "server_error")
    assert "inside" not in answer.text
    assert answer.headers["x-request-id"] in answer.text
    assert "x-should-retry" not in answer.headers
    assert "ZeroDivisionError" in caplog.text


def test_a_database_that_is_away_is_a_503(
    ann: Customer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Never a 401 or 404: 503 with a Retry-After that every SDK honours, also from /readyz; /healthz goes on.

    The log says what is away and why, and nothing of what was asked of it.
    """

    def away() -> None:
        raise OperationalError("SELECT 1", {}, Exception("gone"))

    monkeypatch.setattr(works, "app_engine", away)
    for path in ("/v1/files", "/v1/batches/x", "/readyz"):
        answer = ann.http.get(path)
        assert shape(answer) == (503, "service_unavailable")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert "x-should-retry" not in answer.headers
    assert ann.http.get("/healthz").json() == {"status": "ok"}
    assert "The database is away or busy. Try again in a moment. (builtins.Exception) gone" in caplog.text
    assert "SELECT 1" not in caplog.text


def test_what_the_server_itself_refuses_is_json_too(ann: Customer) -> None:
    """Oversized headers never reach the application and still get the common shape and headers."""
    answer = ann.http.get("/v1/files", headers={"X-Long": "x" * 70_000})
    assert shape(answer)[0] == 431
    assert [name for name in ALWAYS if name not in answer.headers] == []


def test_every_answer_has_an_id_of_its_own(ann: Customer) -> None:
    """Two answers never share a request id, and a client's own is not taken for one."""
    answers = [ann.http.get("/v1/files", headers={"x-request-id": "mine"}) for _ in range(2)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert ids[0] != ids[1]
    assert all(one.startswith("req_") for one in ids)
    assert all(int(answer.headers["openai-processing-ms"]) >= 0 for answer in answers)
