"""A small API server with scripted objects of every status for two accounts: what the pages are tested against."""

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
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
    # Users' passwords by e-mail, and where each request to sign in said that it comes from.
    users: dict[str, str] = field(default_factory=dict)
    # What was brought of an identity provider, and the code that it is refused with.
    identities: list[dict[str, str]] = field(default_factory=list)
    identity_refused: tuple[int, str] | None = None
    addresses: list[str | None] = field(default_factory=list)

    def answer(self, path: str, query: Mapping[str, str], token: str, sent: "Sent") -> Answer:
        """Status and body (JSON, or bytes for a file's content)."""
        if self.broken is not None:
            return self.broken, scripted.error("The database is away for now.", "service_unavailable")
        if sent.method == "POST" and path in ENTRANCES:
            self.addresses.append(sent.address)
            return enter(self, path, json.loads(sent.body))
        # What is public is answered whoever asks.
        account = self.accounts.get(scripted.NEWCOMER if path in PUBLIC else token)
        if account is None:
            return 401, scripted.error("Incorrect API key provided.", "invalid_api_key")
        if path.startswith(("/gridline/v1/tokens", "/gridline/v1/sessions")):
            return access(self, path, token, sent)
        for pattern, route in ROUTES:
            match = re.fullmatch(pattern, path)
            if match:
                return route(account, *match.groups(), query=query)
        return 404, scripted.error("There is nothing at this address.", "unknown_url")


@dataclass(frozen=True)
class Sent:
    """What came beside address and token."""

    method: str = "GET"
    body: bytes = b""
    address: str | None = None


IDENTITY = "/gridline/v1/sessions/identity"
ENTRANCES = ("/gridline/v1/users", "/gridline/v1/sessions", IDENTITY)


def enter(fake: FakeAPI, path: str, body: dict[str, str]) -> Answer:
    """Sign up or in: a session for an account that is new with its user."""
    if path == IDENTITY:
        fake.identities.append(body)
        if fake.identity_refused is not None:
            status, code = fake.identity_refused
            return status, scripted.error("Refused.", code)
        # Whether it is to be believed is the real API's to say.
        claims = json.loads(urlsafe_b64decode(body["id_token"].split(".")[1] + "=="))
        return started(fake, claims["email"])
    email, password = body["email"], body["password"]
    if path.endswith("/users"):
        if fake.users.setdefault(email, password) != password:
            return 409, scripted.error("Taken.", "email_taken")
    elif fake.users.get(email) != password:
        return 401, scripted.error("Wrong.", "invalid_credentials")
    return started(fake, email)


def started(fake: FakeAPI, email: str) -> Answer:
    """A new session."""
    secret = f"gl_session_{len(fake.accounts)}_of_{email}"
    fake.accounts[secret] = scripted.newcomer(email)
    account = fake.accounts[secret].shown
    return 200, {
        "user": {"id": f"user_{email}", "email": email},
        "account": {"id": account["id"], "name": email},
        "secret": secret,
    }


def access(fake: FakeAPI, path: str, token: str, sent: Sent) -> Answer:
    """Sessions and tokens of a signed-in user."""
    if not token.startswith("gl_session_"):
        return 403, scripted.error("It needs a session.", "insufficient_permissions")
    account = fake.accounts[token]
    if path.endswith("/sessions"):
        del fake.accounts[token]
        return 200, {"deleted": True}
    if sent.method == "DELETE":
        account.tokens.pop(path.rpartition("/")[2], None)
        return 200, {"deleted": True}
    if sent.method == "GET":
        return 200, {"object": "list", "data": list(account.tokens.values()), "has_more": False}
    secret = f"gl_live_text-{len(account.tokens)}-{account.shown['id']}"
    made = json.loads(sent.body) | {
        "id": f"tok_{len(account.tokens)}",
        "prefix": "gl_live_",
        "last_four": "7Yqk",
    }
    account.tokens[made["id"]] = made | {"created_at": scripted.NOW, "created_by": "user"}
    fake.accounts[secret] = account
    return 200, account.tokens[made["id"]] | {"secret": secret}


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


def _cancel(account: scripted.Account, batch_id: str, *, query: Mapping[str, str]) -> Answer:
    status, batch = _found(account.batches, batch_id, "batch")
    if status == HTTPStatus.OK:
        batch["status"] = "cancelling"
    return status, batch


def _events(account: scripted.Account, batch_id: str, *, query: Mapping[str, str]) -> Answer:
    return _found(account.events, batch_id, "batch")


def _receipt(account: scripted.Account, batch_id: str, *, query: Mapping[str, str]) -> Answer:
    return _found(account.receipts, batch_id, "receipt of batch")


def _file(account: scripted.Account, file_id: str, *, query: Mapping[str, str]) -> Answer:
    return _found(account.files, file_id, "file")


def _files(account: scripted.Account, *, query: Mapping[str, str]) -> Answer:
    return 200, {"object": "list", "data": list(account.files.values())[:20], "has_more": False}


def _webhooks(account: scripted.Account, *, query: Mapping[str, str]) -> Answer:
    return 200, {"object": "list", "data": [scripted.WEBHOOK], "has_more": False}


def _deliveries(account: scripted.Account, webhook_id: str, *, query: Mapping[str, str]) -> Answer:
    return 200, {"object": "list", "data": [scripted.DELIVERY], "has_more": False}


def _content(account: scripted.Account, file_id: str, *, query: Mapping[str, str]) -> Answer:
    return _found(account.contents, file_id, "file")


def _usage(account: scripted.Account, *, query: Mapping[str, str]) -> Answer:
    return 200, {"object": "list", "data": scripted.usage(account, query["from"]), "has_more": False}


def _statement(account: scripted.Account, *, query: Mapping[str, str]) -> Answer:
    if query.get("format") == "csv":
        return 200, f"at,id\r\n{query['from']},{account.shown['id']}\r\n".encode()
    return 200, scripted.statement(account, query["from"], query["to"])


def _found(kept: Mapping[str, Any], key: str, what: str) -> Answer:
    if key not in kept:
        return 404, scripted.error(f"No {what} found with id '{key}'.", "not_found")
    return 200, kept[key]


def _pricing(account: scripted.Account, *, query: Mapping[str, str]) -> Answer:
    return 200, scripted.PRICING


def _platform(account: scripted.Account, *, query: Mapping[str, str]) -> Answer:
    return 200, scripted.PLATFORM


PRICING, PLATFORM = "/gridline/v1/pricing", "/gridline/v1/platform"
PUBLIC = (PRICING, PLATFORM)
ROUTES: list[tuple[str, Callable[..., Answer]]] = [
    (r"/gridline/v1/account", _account),
    (r"/gridline/v1/batches/([^/]+)/events", _events),
    (r"/gridline/v1/batches/([^/]+)/receipt", _receipt),
    (r"/gridline/v1/usage", _usage),
    (r"/gridline/v1/statement", _statement),
    (r"/openai/v1/models", _models),
    (r"/gridline/v1/batches", _batches),
    (r"/gridline/v1/batches/([^/]+)", _batch),
    (r"/openai/v1/batches/([^/]+)/cancel", _cancel),
    (PRICING, _pricing),
    (PLATFORM, _platform),
    (r"/gridline/v1/webhooks", _webhooks),
    (r"/gridline/v1/webhooks/([^/]+)/deliveries", _deliveries),
    (r"/openai/v1/files", _files),
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
            fake.seen.append((self.command, path, token))
            sent = Sent(
                self.command,
                self.rfile.read(int(self.headers.get("content-length", "0"))),
                self.headers.get("x-forwarded-for"),
            )
            status, body = fake.answer(path, query, token, sent)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.send_header("content-type", "application/json")
            self.send_header("x-request-id", "req_fake")
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            """As a GET."""
            self.do_GET()

        def do_DELETE(self) -> None:
            """As a GET."""
            self.do_GET()

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
