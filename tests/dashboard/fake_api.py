"""A small API server with scripted objects of every status for two accounts: what the pages are tested against."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.dashboard import scripted

Answer = tuple[int, Any]


@dataclass
class FakeAPI:
    """What it serves, by token; tests change it while it runs."""

    url: str = ""
    accounts: dict[str, scripted.Account] = field(default_factory=scripted.accounts)
    # Every request: method, path, token.
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    # Answer everything with this status instead.
    broken: int | None = None

    def answer(self, path: str, query: Mapping[str, str], token: str) -> Answer:
        """Status and body (JSON, or bytes for a file's content)."""
        if self.broken is not None:
            return self.broken, scripted.error("The database is away for now.", "service_unavailable")
        account = self.accounts.get(token)
        if account is None:
            return 401, scripted.error("Incorrect API key provided.", "invalid_api_key")
        for pattern, route in ROUTES:
            match = re.fullmatch(pattern, path)
            if match:
                return route(account, *match.groups(), query=query)
        return 404, scripted.error("There is nothing at this address.", "unknown_url")


def _account(account: scripted.Account, *, query: Mapping[str, str]) -> Answer:
    return 200, account.shown


def _models(account: scripted.Account, *, query: Mapping[str, str]) -> Answer:
    chat = {
        "id": scripted.CHAT,
        "object": "model",
        "created": scripted.NOW,
        "owned_by": "x",
        "gridline": {"kind": "chat"},
    }
    return 200, {"object": "list", "data": [chat]}


def _batches(account: scripted.Account, *, query: Mapping[str, str]) -> Answer:
    rows = list(account.batches.values())
    if "after" in query:
        rows = rows[[one["id"] for one in rows].index(query["after"]) + 1 :]
    limit = int(query.get("limit", "20"))
    return 200, {"object": "list", "data": rows[:limit], "has_more": len(rows) > limit}


def _batch(account: scripted.Account, batch_id: str, *, query: Mapping[str, str]) -> Answer:
    return _found(account.batches, batch_id, "batch")


def _events(account: scripted.Account, batch_id: str, *, query: Mapping[str, str]) -> Answer:
    return _found(account.events, batch_id, "batch")


def _receipt(account: scripted.Account, batch_id: str, *, query: Mapping[str, str]) -> Answer:
    return _found(account.receipts, batch_id, "receipt of batch")


def _file(account: scripted.Account, file_id: str, *, query: Mapping[str, str]) -> Answer:
    return _found(account.files, file_id, "file")


def _content(account: scripted.Account, file_id: str, *, query: Mapping[str, str]) -> Answer:
    return _found(account.contents, file_id, "file")


def _found(kept: Mapping[str, Any], key: str, what: str) -> Answer:
    if key not in kept:
        return 404, scripted.error(f"No {what} found with id '{key}'.", "not_found")
    return 200, kept[key]


ROUTES: list[tuple[str, Callable[..., Answer]]] = [
    (r"/gridline/v1/account", _account),
    (r"/gridline/v1/batches/([^/]+)/events", _events),
    (r"/gridline/v1/batches/([^/]+)/receipt", _receipt),
    (r"/openai/v1/models", _models),
    (r"/openai/v1/batches", _batches),
    (r"/openai/v1/batches/([^/]+)", _batch),
    (r"/openai/v1/files/([^/]+)", _file),
    (r"/openai/v1/files/([^/]+)/content", _content),
]


@contextmanager
def running(port: int = 0) -> Iterator[FakeAPI]:
    """The server on a loopback port, in a thread."""
    fake = FakeAPI()

    class Handler(BaseHTTPRequestHandler):
        """Answers from ``fake``."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Look the answer up and send it with a request id."""
            path, _, text = self.path.partition("?")
            query = dict(pair.split("=", 1) for pair in text.split("&") if "=" in pair)
            token = self.headers.get("authorization", "").removeprefix("Bearer ")
            fake.seen.append(("GET", path, token))
            status, body = fake.answer(path, query, token)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.send_header("content-type", "application/json")
            self.send_header("x-request-id", "req_fake")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
