"""The typed client: what it sends, how it reads answers, and what it raises."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from gridline.client import Batch, Client, ClientError, ModelInfo, Platform

TOKEN = "gl-test-token"
AT = 1_767_614_400
BATCH: dict[str, Any] = {
    "id": "batch_a",
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "status": "in_progress",
    "completion_window": "24h",
    "input_file_id": "file-a",
    "output_file_id": None,
    "error_file_id": None,
    "model": "smollm2-135m-instruct",
    "errors": None,
    "created_at": AT,
    "in_progress_at": AT + 5,
    "completed_at": None,
    "expires_at": AT + 86_400,
    "request_counts": {"total": 10, "completed": 6, "failed": 1, "cancelled": 0},
    "usage": None,
    "metadata": {"description": "questions"},
    "gridline": {
        "reason": "All GPUs are busy.",
        "reason_code": "gridline_capacity",
        "since": AT + 5,
        "next_step": "Wait.",
        "hold": "0.000001500",
        "cost": None,
        "error_code": None,
    },
}


def client_of(
    answer: Callable[[httpx.Request], httpx.Response], base_url: str = "http://api/openai/v1"
) -> Client:
    """A client whose calls are answered by a function."""
    return Client(base_url, TOKEN, transport=httpx.MockTransport(answer))


def answering(
    body: Any, seen: list[httpx.Request] | None = None
) -> Callable[[httpx.Request], httpx.Response]:
    """Answers every request with a body, and keeps the requests."""

    def answer(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        return httpx.Response(200, json=body)

    return answer


def test_batch_reads_every_part() -> None:
    """A batch object becomes typed: instants in UTC, amounts in nano-credits, the wait as one thing."""
    batch = client_of(answering(BATCH)).batch("batch_a")
    assert batch.created_at == datetime(2026, 1, 5, 12, tzinfo=UTC)
    assert set(batch.stamps) == {"created", "in_progress"}
    assert (batch.counts.total, batch.counts.left) == (10, 3)
    assert batch.hold_nanos == 1_500
    assert batch.cost_nanos is None
    assert batch.wait is not None
    assert batch.wait.reason_code == "gridline_capacity"
    assert batch.wait.since == datetime(2026, 1, 5, 12, 0, 5, tzinfo=UTC)
    assert not batch.ended


def test_batch_reads_nulls() -> None:
    """A batch that has only just been created, all nulls, is read without a guess."""
    bare = dict.fromkeys(BATCH) | {"id": "batch_b", "status": "validating", "created_at": AT}
    batch = Batch.from_json(bare)
    assert batch.counts.total == 0
    assert batch.wait is None
    assert batch.errors == ()
    assert batch.hold_nanos is None


def test_validation_errors_keep_line_and_total() -> None:
    """Listed line errors keep their line, and the total says how many there are beyond the list."""
    errors = {
        "object": "list",
        "total": 250,
        "data": [{"code": "invalid_json_line", "message": "Not JSON.", "param": None, "line": 7}],
    }
    batch = Batch.from_json(BATCH | {"status": "failed", "failed_at": AT + 9, "errors": errors})
    assert batch.errors[0].line == 7
    assert batch.errors_total == 250
    assert batch.ended_at == datetime(2026, 1, 5, 12, 0, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://api:8000/openai/v1", "http://api:8000/openai/v1/files"),
        ("http://api:8000/v1/", "http://api:8000/v1/files"),
    ],
)
def test_a_base_url_with_openais_path(base_url: str, expected: str) -> None:
    """The address that the OpenAI SDK is given works here as it is."""
    seen: list[httpx.Request] = []
    client_of(answering({"data": [], "has_more": False}, seen), base_url).files()
    assert str(seen[0].url).split("?", maxsplit=1)[0] == expected
    assert seen[0].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("base_url", ["http://api:8000", "http://api:8000/"])
def test_a_bare_server_is_asked_for_its_path(base_url: str) -> None:
    """Whatever dialect it speaks: it says once where OpenAI's resources are, and what batches may have."""
    seen: list[httpx.Request] = []
    platform = {
        "base_paths": ["/made/up/v2", "/v1"],
        "endpoints": ["/v1/messages"],
        "completion_windows": ["72h"],
        "file_bytes_max": 7,
        "file_requests_max": 3,
    }
    client = client_of(answering({"data": [], "has_more": False} | platform, seen), base_url)
    client.files()
    client.files()
    paths = [one.url.path for one in seen]
    assert paths == ["/gridline/v1/platform", "/made/up/v2/files", "/made/up/v2/files"]
    assert client.base_url == "http://api:8000/made/up/v2"
    assert client.platform == Platform("/made/up/v2", ("/v1/messages",), ("72h",), 7, 3)


@pytest.mark.parametrize("key", ["gridline", "tf", "acme"])
def test_the_dialects_object_is_found_under_any_key(key: str) -> None:
    """What a dialect says of a batch or a model beside OpenAI's keys is read, whatever it calls its object."""
    body = {name: one for name, one in BATCH.items() if name != "gridline"} | {key: BATCH["gridline"]}
    assert Batch.from_json(body).hold_nanos == 1_500
    plain = {name: one for name, one in BATCH.items() if name != "gridline"}
    assert (Batch.from_json(plain).wait, Batch.from_json(plain).hold_nanos) == (None, None)
    model = {"id": "m", "object": "model", "created": AT, "owned_by": "x", key: {"kind": "chat"}}
    assert ModelInfo.from_json(model).kind == "chat"


def test_pages_go_on_after_an_id() -> None:
    """A page carries has_more, and the next one is asked for by the last id."""
    seen: list[httpx.Request] = []
    page = client_of(answering({"data": [BATCH], "has_more": True}, seen)).batches(after="batch_z", limit=100)
    assert page.has_more
    assert page.data[0].id == "batch_a"
    assert dict(seen[0].url.params) == {"limit": "100", "after": "batch_z"}


@pytest.mark.parametrize("hostile", ["../../gridline/v1/account", "a/b", "..", "x?limit=1", "x#y", ""])
def test_an_id_never_leaves_its_place_in_the_path(hostile: str) -> None:
    """An id from a page's address stays one segment: it cannot reach another route or become a list."""
    seen: list[httpx.Request] = []
    client_of(answering(BATCH, seen)).batch(hostile)
    path = seen[0].url.raw_path.decode()
    assert path.startswith("/gridline/v1/batches/")
    rest = path.removeprefix("/gridline/v1/batches/")
    assert rest
    assert not set("/?#") & set(rest)
    assert ".." not in path


def test_account_and_receipt_are_exact() -> None:
    """Balances and receipts are whole nano-credits to the last digit."""
    account = {
        "object": "account",
        "id": "acct_a",
        "name": "Demo",
        "limits": {"open_batches": {"limit": 2, "current": 1}, "daily_credits": {"limit": "100.000000000"}},
        "balance": {"available": "99.999999999", "held": "0.000000001"},
    }
    read_account = client_of(answering(account)).account()
    assert read_account.available_nanos == 99_999_999_999
    assert read_account.limits["open_batches"].current == 1
    assert read_account.limits["daily_credits"].current is None
    receipt = {
        "object": "gridline.receipt",
        "state": "settled",
        "batch_id": "batch_a",
        "model": "m",
        "lines": 2,
        "input_tokens": 10,
        "output_tokens": 4,
        "rates": {"input_token": "0.000000020", "output_token": "0.000000080"},
        "hold": "0.000001000",
        "charged": "0.000000520",
        "returned": "0.000000480",
        "held_at": AT,
        "settled_at": AT + 60,
    }
    read = client_of(answering(receipt)).receipt("batch_a")
    assert read.charged_nanos == read.input_tokens * read.input_price_nanos + 4 * read.output_price_nanos
    assert read.hold_nanos == (read.charged_nanos or 0) + (read.returned_nanos or 0)
    still = receipt | dict.fromkeys(("charged", "returned", "lines", "settled_at")) | {"state": "held"}
    held = client_of(answering(still)).receipt("batch_a")
    assert (held.state, held.charged_nanos, held.hold_nanos) == ("held", None, 1_000)


def test_events_files_and_models() -> None:
    """Events, files and models are read in the API's order."""
    events = {"object": "list", "data": [{"at": AT, "kind": "created", "actor": "tok_a", "details": {}}]}
    assert client_of(answering(events)).events("batch_a")[0].kind == "created"
    info = {"id": "file-a", "filename": "<b>.jsonl", "bytes": 7, "purpose": "batch", "created_at": AT}
    assert client_of(answering(info)).file("file-a").filename == "<b>.jsonl"
    models = {"object": "list", "data": [{"id": "m1", "created": AT, "owned_by": "gridline"}]}
    assert [one.id for one in client_of(answering(models)).models()] == ["m1"]


def test_a_refusal_carries_code_message_and_request_id() -> None:
    """What the API refuses comes out with its code, its sentence and the id for its logs."""
    error = {"message": "No batch found with id 'x'.", "type": "invalid_request_error", "param": None}

    def answer(_request: httpx.Request) -> httpx.Response:
        body = {"error": error | {"code": "not_found"}}
        return httpx.Response(404, json=body, headers={"x-request-id": "req_1"})

    with pytest.raises(ClientError) as caught:
        client_of(answer).batch("x")
    assert (caught.value.code, caught.value.request_id, caught.value.status) == ("not_found", "req_1", 404)
    assert caught.value.not_found
    assert caught.value.message == error["message"]


@pytest.mark.parametrize("content", [b"<html>bad gateway</html>", b'{"error": "text"}', b"[]", b""])
@pytest.mark.parametrize("status", [200, 502])
def test_an_answer_that_is_not_the_apis(content: bytes, status: int) -> None:
    """A proxy's page or a foreign error shape is an error of its own, never a KeyError in a page."""
    with pytest.raises(ClientError) as caught:
        client_of(lambda _request: httpx.Response(status, content=content)).account()
    assert caught.value.code == "unreadable"
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("failure", "code"),
    [(httpx.ReadTimeout("slow"), "timeout"), (httpx.ConnectError("refused"), "unreachable")],
)
def test_no_answer_is_a_client_error(failure: Exception, code: str) -> None:
    """Silence and refusal of the connection say which, with the address and what to do."""

    def answer(_request: httpx.Request) -> httpx.Response:
        raise failure

    with pytest.raises(ClientError, match="http://api") as caught:
        client_of(answer).account()
    assert caught.value.code == code
    assert TOKEN not in str(caught.value)


def test_a_closed_client_says_so() -> None:
    """A call after closing (the customer signed out meanwhile) is a ClientError like every other failure."""
    with client_of(answering(BATCH)) as client:
        assert client.batch("batch_a").id == "batch_a"
    with pytest.raises(ClientError, match="closed"):
        client.batch("batch_a")


class Dripping(httpx.SyncByteStream):
    """A body that comes in pieces and says how far it was read."""

    def __init__(self, pieces: int, *, breaks: bool) -> None:
        self.pieces, self.breaks, self.given = pieces, breaks, 0

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self.pieces):
            self.given += 1
            yield b"x" * (1 << 18)
        if self.breaks:
            raise httpx.ReadError("connection reset")


def test_download_streams() -> None:
    """A download is read as it is used: the first piece arrives before the last was asked for."""
    body = Dripping(8, breaks=False)
    headers = {"content-length": str(8 << 18)}
    with client_of(lambda _request: httpx.Response(200, stream=body, headers=headers)).download(
        "file-a"
    ) as got:
        assert got.length == 8 << 18
        first = next(got.chunks)
        assert body.given < 8
        assert len(first) + sum(len(piece) for piece in got.chunks) == 8 << 18


def test_a_broken_download_never_looks_whole() -> None:
    """A connection lost in the middle raises: half a file is not taken for the file."""
    body = Dripping(2, breaks=True)
    client = client_of(lambda _request: httpx.Response(200, stream=body))
    with pytest.raises(ClientError, match="cannot be reached"), client.download("file-a") as got:
        list(got.chunks)


def test_a_refused_download_says_why() -> None:
    """A file that is gone answers with the API's error, not with an empty download."""
    error = {
        "error": {"message": "No file.", "type": "invalid_request_error", "param": None, "code": "not_found"}
    }
    client = client_of(lambda _request: httpx.Response(404, content=json.dumps(error).encode()))
    with pytest.raises(ClientError, match="No file"), client.download("file-a"):
        pass
