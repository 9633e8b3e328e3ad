"""Slow, stuck and oversized clients beside a client that only wants its answer."""

import heapq
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import httpx2
import openai
import pytest
from sqlalchemy import Engine

from gridline import limits
from gridline.customers import accounts, tokens
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.settings import read_settings
from gridline.storage.objects import Store
from tests.serving import PEPPER, Poller, Served, serving

pytestmark = [pytest.mark.conformance, pytest.mark.deep, pytest.mark.timeout(240)]

MEGABYTE = 1000 * 1000
LINE = b'{"a":"' + b"x" * (50_000 - 9) + b'"}\n'
HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="r.jsonl"\r\n\r\n'
TAIL = b'\r\n--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b--\r\n'
FORM = "multipart/form-data; boundary=b"


@dataclass
class Site:
    """A served API with one customer, who has a batch to poll."""

    served: Served
    store: Store
    client: httpx.Client
    token: str
    batch: str

    def poller(self, *, every_seconds: float) -> Poller:
        """A client that polls the batch."""
        return Poller(f"{self.served.url}/v1/batches/{self.batch}", self.token, every_seconds)

    def connection(self) -> socket.socket:
        """A bare connection."""
        parts = urlsplit(self.served.url)
        return socket.create_connection((parts.hostname, parts.port or 80), timeout=60)

    def head(self, first: str, *headers: str) -> bytes:
        """The head of a request by the customer."""
        always = ("Host: x", f"Authorization: Bearer {self.token}")
        return "\r\n".join([f"{first} HTTP/1.1", *always, *headers, "", ""]).encode()

    def files(self) -> list[dict[str, object]]:
        """The customer's files."""
        found: list[dict[str, object]] = self.client.get("/v1/files").json()["data"]
        return found


@pytest.fixture
def site(database: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """``python -m api.serve``, a customer, and a batch."""
    chosen = replace(read_settings({}), token_pepper=PEPPER)
    monkeypatch.setattr(tokens, "settings", lambda: chosen)
    with unit_of_work() as work:
        account = accounts.open_account(work, "patient")
        _, token = tokens.issue(work, account.id, "patient")
        work.session.get_one(Account, account.id).requests_per_minute_max = 10**6
    headers = {"Authorization": f"Bearer {token}"}
    with (
        serving(database, tmp_path) as served,
        httpx.Client(base_url=served.url, headers=headers, timeout=120, verify=False) as client,
    ):
        file = client.post("/v1/files", data={"purpose": "batch"}, files={"file": ("r.jsonl", b'{"a":1}\n')})
        wanted = {"input_file_id": file.json()["id"], "endpoint": "/v1/chat/completions"}
        batch = client.post("/v1/batches", json={**wanted, "completion_window": "24h"})
        store = Store((tmp_path / "objects").as_uri())
        yield Site(served, store, client, token, batch.json()["id"])


def answer(connection: socket.socket) -> tuple[int, dict[str, str], dict[str, object]]:
    """Status, headers and JSON of an answer."""
    with connection.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        headers = {}
        while line := stream.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        body: dict[str, object] = json.loads(stream.read(int(headers["content-length"])))
    return status, headers, body


def send_slowly(site: Site, size: int, *, bytes_per_second: int) -> dict[str, object]:
    """Upload a file of this size in quarters of a second's worth; what the answer says."""
    length = len(HEAD) + size + len(TAIL)
    slice_ = LINE * (bytes_per_second // 4 // len(LINE))
    with site.connection() as connection:
        connection.sendall(
            site.head("POST /v1/files", f"Content-Type: {FORM}", f"Content-Length: {length}") + HEAD
        )
        begun = time.monotonic()
        for number in range(size // len(slice_)):
            connection.sendall(slice_)
            time.sleep(max(0.0, begun + (number + 1) / 4 - time.monotonic()))
        connection.sendall(TAIL)
        status, _, body = answer(connection)
    return {**body, "status_code": status}


def test_four_slow_uploads_leave_a_poll_quick_and_memory_flat(site: Site) -> None:
    """Four times 200 MB at 2 MB/s arrive whole; polls beside them stay under 1 s, the process under 300 MB."""
    poller = site.poller(every_seconds=0.2)
    with poller.asking(), ThreadPoolExecutor(4) as pool:
        sent = [
            pool.submit(send_slowly, site, 200 * MEGABYTE, bytes_per_second=2 * MEGABYTE) for _ in range(4)
        ]
        answers = [one.result() for one in sent]
    assert [(one["status_code"], one["bytes"]) for one in answers] == [(200, 200 * MEGABYTE)] * 4
    assert poller.statuses == {200}
    assert len(poller.seconds) > 300
    assert poller.p95 < 1
    assert site.served.peak_megabytes() < 300


SLOW = 500
SLOW_SECONDS = 20


@contextmanager
def slow_clients(site: Site, file_id: str) -> Iterator[list[tuple[socket.socket, float]]]:
    """500 connections of three kinds, begun, each with the seconds after which it sends one more byte (0: never)."""
    body = site.head("POST /v1/files", f"Content-Type: {FORM}", "Content-Length: 1000000")
    kinds = [
        (b"POST /v1/files HTTP/1.1\r\nHost: x\r\nX-Slow: ", 10.0),
        (body + HEAD, 1.0),
        (site.head(f"GET /v1/files/{file_id}/content"), 0.0),
    ]
    with ExitStack() as opened:
        made = []
        for number in range(SLOW):
            begin, every = kinds[number % len(kinds)]
            connection = opened.enter_context(site.connection())
            connection.sendall(begin)
            made.append((connection, every))
        yield made


def trickle(slow: list[tuple[socket.socket, float]], *, until: float) -> None:
    """Send each one's next byte when it is due."""
    due = [(time.monotonic() + every, number) for number, (_, every) in enumerate(slow) if every]
    heapq.heapify(due)
    while (now := time.monotonic()) < until:
        while due[0][0] <= now:
            at, number = due[0]
            connection, every = slow[number]
            connection.sendall(b"x")
            heapq.heapreplace(due, (at + every, number))
        time.sleep(0.02)


def test_five_hundred_slow_connections_leave_others_alone(site: Site) -> None:
    """Heads at a byte in 10 s, bodies at a byte a second, downloads nobody reads: polls stay under 1 s, then all works."""
    name = ("large.jsonl", LINE * 1_000)
    large = site.client.post("/v1/files", data={"purpose": "batch"}, files={"file": name}).json()["id"]
    poller = site.poller(every_seconds=0.1)
    end = time.monotonic() + SLOW_SECONDS
    with poller.asking(), slow_clients(site, large) as slow:
        trickle(slow, until=end)
    assert poller.statuses == {200}
    assert len(poller.seconds) > 50
    assert poller.p95 < 1
    assert site.client.get(f"/v1/files/{large}/content").content == LINE * 1_000
    assert {file["id"] for file in site.files()} >= {large}
    assert site.served.peak_megabytes() < 300


def test_an_endless_stream_is_refused_and_leaves_nothing(site: Site) -> None:
    """250 MB in chunks, without a length, get a 413 that names the limit; no object and no file stays."""
    before = site.store.list("")

    def body() -> Iterator[bytes]:
        yield HEAD
        yield from (LINE for _ in range(5_000))
        yield TAIL

    refused = site.client.post("/v1/files", content=body(), headers={"Content-Type": FORM})
    assert (refused.status_code, refused.headers["x-should-retry"]) == (413, "false")
    assert refused.json()["error"]["limit"]["limit"] == limits.FILE_BYTES_MAX
    assert site.store.list("") == before
    assert len(site.files()) == 1


def test_an_oversized_file_is_one_attempt_of_the_sdk(site: Site) -> None:
    """201 MB with a length: openai-python raises the readable 413 and does not send all of it again."""
    sent: list[httpx2.Request] = []
    hooks = {"request": [sent.append]}
    with (
        httpx2.Client(event_hooks=hooks, timeout=120, verify=False) as plain,
        openai.OpenAI(base_url=f"{site.served.url}/v1", api_key=site.token, http_client=plain) as sdk,
        pytest.raises(openai.APIStatusError) as caught,
    ):
        sdk.files.create(file=("r.jsonl", LINE * 4_020), purpose="batch")
    assert caught.value.status_code == 413
    assert str(limits.FILE_BYTES_MAX) in caught.value.message
    assert len(sent) == 1
    assert len(site.files()) == 1


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_beyond_all_measure_still_reads_its_refusal(site: Site, *, chunked: bool) -> None:
    """500 MB, which the server does not even begin to take: whoever sends all of it first finds a 413, not a reset."""
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(HEAD) + 10_000 * len(LINE)}"
    with site.connection() as connection:
        connection.sendall(site.head("POST /v1/files", f"Content-Type: {FORM}", length))
        for piece in (HEAD, *[LINE] * 10_000):
            connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" if chunked else piece)
        status, headers, body = answer(connection)
    assert (status, headers["x-should-retry"]) == (413, "false")
    assert str(limits.FILE_BYTES_MAX) in str(body)
