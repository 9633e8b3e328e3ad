"""The matrix of who may call what: every route, every way to say who you are, and no other answer."""

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

import httpx
import pytest
from sqlalchemy import Engine

from api.app import OWN_PATH, create_app
from api.auth import SESSION
from gridline import limits
from gridline.customers import tokens
from gridline.customers.tables import Token
from gridline.db.work import unit_of_work
from gridline.storage.objects import Store
from tests.api.conftest import Customer
from tests.api.people import signed_up

READ, WRITE = tokens.READ, tokens.WRITE

SCOPES: dict[str, str | None] = {
    "POST /files": WRITE,
    "GET /files": READ,
    "GET /files/<file_id>": READ,
    "GET /files/<file_id>/content": READ,
    "DELETE /files/<file_id>": WRITE,
    "POST /uploads": WRITE,
    "POST /uploads/<upload_id>/parts": WRITE,
    "POST /uploads/<upload_id>/complete": WRITE,
    "POST /uploads/<upload_id>/cancel": WRITE,
    "POST /batches": WRITE,
    "GET /batches": READ,
    "GET /batches/<batch_id>": READ,
    "POST /batches/<batch_id>/cancel": WRITE,
    "GET /models": READ,
    "GET /models/<path:model>": READ,
    "GET /gridline/v1/account": READ,
    "GET /gridline/v1/batches": READ,
    "GET /gridline/v1/batches/<batch_id>": READ,
    "GET /gridline/v1/batches/<batch_id>/receipt": READ,
    "GET /gridline/v1/batches/<batch_id>/events": READ,
    "GET /gridline/v1/batches/<batch_id>/results": READ,
    "GET /gridline/v1/batches/<batch_id>/waits": READ,
    "GET /gridline/v1/entries": READ,
    "GET /gridline/v1/statement": READ,
    "GET /gridline/v1/usage": READ,
    "POST /gridline/v1/estimates": WRITE,
    "GET /gridline/v1/webhooks": READ,
    "POST /gridline/v1/webhooks": WRITE,
    "GET /gridline/v1/webhooks/<webhook_id>": READ,
    "POST /gridline/v1/webhooks/<webhook_id>": WRITE,
    "DELETE /gridline/v1/webhooks/<webhook_id>": WRITE,
    "POST /gridline/v1/webhooks/<webhook_id>/rotate": WRITE,
    "POST /gridline/v1/webhooks/<webhook_id>/test": WRITE,
    "GET /gridline/v1/webhooks/<webhook_id>/deliveries": READ,
    "POST /gridline/v1/messages": WRITE,
    "GET /gridline/v1/session": SESSION,
    "DELETE /gridline/v1/sessions": SESSION,
    "POST /gridline/v1/budget": SESSION,
    "DELETE /gridline/v1/budget": SESSION,
    "GET /gridline/v1/mail_notices": SESSION,
    "POST /gridline/v1/mail_notices": SESSION,
    "POST /gridline/v1/mail_notices/confirm": SESSION,
    "DELETE /gridline/v1/mail_notices": SESSION,
    "POST /gridline/v1/tokens": SESSION,
    "GET /gridline/v1/tokens": SESSION,
    "DELETE /gridline/v1/tokens/<token_id>": SESSION,
    "POST /gridline/v1/users": None,
    "POST /gridline/v1/sessions": None,
    "GET /gridline/v1/pricing": None,
    "GET /gridline/v1/platform": None,
    "GET /healthz": None,
    "GET /readyz": None,
    "GET /metrics": None,
    "GET /openapi.json": None,
    "GET /docs": None,
    "GET /docs/<name>": None,
}
"""What each route asks for; SESSION: no token will do, None: nothing. A route that is not here fails the tests: say what it asks for."""


class Call(NamedTuple):
    """A method on one address of the live server, with the route that it goes to."""

    route: str
    method: str
    path: str


def calls() -> list[Call]:
    """Every method of every rule, under each base path; ids are filled in with ones that nobody has."""
    application = create_app()
    bases = application.config["PROFILE"].base_paths
    found = []
    for rule in application.url_map.iter_rules():
        name = rule.rule
        if not name.startswith(OWN_PATH):
            for base in bases:
                name = name.removeprefix(base)
        path = re.sub(r"<(?:path:)?(\w+)>", lambda one: IDS[one[1]], rule.rule)
        found += [Call(f"{method} {name}", method, path) for method in (rule.methods or set()) - {"HEAD"}]
    return found


IDS = {
    "file_id": "file-" + "z" * 24,
    "upload_id": "upload_" + "z" * 24,
    "batch_id": "batch_" + "z" * 24,
    "webhook_id": "whk_" + "z" * 24,
    "token_id": "tok_" + "z" * 24,
    "model": "no/such-model",
    "name": "page.js",
}
GUARDED = [call for call in calls() if SCOPES.get(call.route)]
ROUTES = sorted({call.route for call in GUARDED})


@dataclass
class Keys:
    """Texts of one account's tokens."""

    both: str
    reads: str
    writes: str
    revoked: str
    expired: str


@pytest.fixture
def keys(ann: Customer, monkeypatch: pytest.MonkeyPatch) -> Keys:
    """One token of each kind, and no limit to how often they are tried."""
    monkeypatch.setattr(limits, "WRONG_TOKENS_PER_MINUTE_MAX", 1_000_000)
    with unit_of_work() as work:
        made = {
            name: tokens.issue(work, ann.account_id, name, scopes=scopes)
            for name, scopes in {
                "reads": (READ,),
                "writes": (WRITE,),
                "revoked": tokens.SCOPES,
                "expired": tokens.SCOPES,
            }.items()
        }
        tokens.revoke(work, ann.account_id, made["revoked"][0].id, actor="operator:t")
        work.session.get_one(Token, made["expired"][0].id).expires_at = work.now - timedelta(seconds=1)
    return Keys(ann.token, **{name: text for name, (_, text) in made.items()})


@pytest.fixture
def http(address: str, database: Engine, store: Store) -> Iterator[httpx.Client]:
    """A client that says nothing of itself."""
    with httpx.Client(base_url=address, verify=False, timeout=20) as client:
        yield client


def code(answer: httpx.Response) -> tuple[int, str | None]:
    """Status and error code."""
    error = answer.json().get("error") if answer.headers["content-type"] == "application/json" else None
    return answer.status_code, error["code"] if error else None


def test_every_route_has_its_row() -> None:
    """The matrix is the application's routes, no more and no fewer: a new one is tried from its first day."""
    assert {call.route for call in calls()} == set(SCOPES)


def test_open_routes_ask_for_nothing(http: httpx.Client) -> None:
    """Health, figures and the reference answer anybody, and say nothing of rates."""
    for call in calls():
        if SCOPES[call.route] is None:
            answer = http.request(call.method, call.path)
            assert answer.status_code in (200, 404) or (call.method, answer.status_code) == ("POST", 415), (
                call
            )
            assert "x-ratelimit-limit-requests" not in answer.headers


@pytest.mark.parametrize("route", ROUTES)
def test_who_may_call_it(http: httpx.Client, keys: Keys, route: str) -> None:
    """Nobody without a live token (401), nobody without its scope (403, naming it), everybody with both."""
    for call in GUARDED:
        if call.route == route:
            strangers_are_refused(http, keys, call)
            scopes_are_heeded(http, keys, call)


def strangers_are_refused(http: httpx.Client, keys: Keys, call: Call) -> None:
    """Whatever is wrong with the header, or the token stands elsewhere: one answer."""
    refused = {
        "none": [],
        "empty": [""],
        "scheme alone": ["Bearer"],
        "malformed": [f"Bearer {keys.both[:-1]}x"],
        "cut": [f"Bearer {keys.both[:-1]}"],
        "unknown": [f"Bearer gl_live_{secrets.token_hex(19)}"],
        "wrong scheme": [f"Basic {keys.both}"],
        "no scheme": [keys.both],
        "extra space": [f"Bearer  {keys.both}"],
        "tab": [f"Bearer\t{keys.both}"],
        "something behind": [f"Bearer {keys.both} {keys.both}"],
        "comma": [f"Bearer {keys.both},"],
        "twice": [f"Bearer {keys.both}"] * 2,
        "revoked": [f"Bearer {keys.revoked}"],
        "expired": [f"Bearer {keys.expired}"],
    }
    for name, values in refused.items():
        headers = [("Authorization", value) for value in values]
        assert code(http.request(call.method, call.path, headers=headers)) == (401, "invalid_api_key"), name
    query = f"{call.path}?api_key={keys.both}&token={keys.both}&access_token={keys.both}&Authorization=Bearer%20{keys.both}"
    assert code(http.request(call.method, query)) == (401, "invalid_api_key")


def scopes_are_heeded(http: httpx.Client, keys: Keys, call: Call) -> None:
    """A token with one scope opens what asks for it; one with both opens it, however the scheme is written."""
    needed = SCOPES[call.route]
    if needed == SESSION:
        for text in (keys.reads, keys.writes, keys.both):
            answer = http.request(call.method, call.path, headers={"Authorization": f"Bearer {text}"})
            assert code(answer) == (403, "insufficient_permissions")
        return
    for text, scope in ((keys.reads, READ), (keys.writes, WRITE)):
        answer = http.request(call.method, call.path, headers={"Authorization": f"Bearer {text}"})
        if scope == needed:
            assert answer.status_code not in (401, 403), scope
        else:
            assert code(answer) == (403, "insufficient_permissions")
            assert f"Missing scopes: {needed}." in answer.json()["error"]["message"]
    for scheme in ("Bearer", "bearer", "BEARER", "bEaReR"):
        answer = http.request(call.method, call.path, headers={"Authorization": f"{scheme} {keys.both}"})
        assert answer.status_code not in (401, 403), scheme


@pytest.mark.parametrize("route", ROUTES)
def test_another_account_sees_what_nobody_has(ann: Customer, bob: Customer, route: str) -> None:
    """On another account's object every route answers word for word as on one that does not exist, and changes nothing."""
    file_id = ann.file()
    theirs = {"file_id": file_id, "batch_id": str(ann.batch(file_id)["id"])}
    upload = {"filename": "r.jsonl", "purpose": "batch", "bytes": 9, "mime_type": "text/jsonl"}
    theirs["upload_id"] = ann.http.post("/v1/uploads", json=upload).json()["id"]
    hook = ann.http.post("/gridline/v1/webhooks", json={"url": "https://93.184.215.14/hooks"})
    theirs["webhook_id"] = hook.json()["id"]
    for call in GUARDED:
        if call.route != route:
            continue
        path = call.path
        for name, one in theirs.items():
            path = path.replace(IDS[name], one)
        answers = []
        for asked in (call.path, path):
            answer = bob.http.request(call.method, asked)
            text = answer.text
            for name, one in theirs.items():
                text = text.replace(one, IDS[name])
            answers.append((answer.status_code, text, sorted(answer.headers)))
        assert answers[0] == answers[1], call
        assert path == call.path or answers[0][0] == 404, call
    kept = ann.http.get(f"/v1/batches/{theirs['batch_id']}").json()
    assert (kept["status"], ann.http.get(f"/v1/files/{file_id}").status_code) == ("validating", 200)


def test_a_session_opens_every_route(
    http: httpx.Client, database: Engine, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a signed-in user may do on a page the session may do on every route; ended, it opens none."""
    monkeypatch.setattr(limits, "WRONG_TOKENS_PER_MINUTE_MAX", 2 * len(GUARDED))
    with signed_up(address, "eve") as eve:
        for ended in (False, True):
            # Signing out comes last.
            for call in sorted(GUARDED, key=lambda one: one.route == "DELETE /gridline/v1/sessions"):
                status = eve.http.request(call.method, call.path).status_code
                assert status == 401 if ended else status not in (401, 403), call


def test_head_asks_for_what_get_asks_for(http: httpx.Client, keys: Keys) -> None:
    """HEAD is a read: open to a reading token, closed to others."""
    for call in GUARDED:
        if call.method == "GET" and SCOPES[call.route] == READ:
            found = [
                http.head(call.path, headers={"Authorization": f"Bearer {text}"}).status_code
                for text in (keys.revoked, keys.writes, keys.reads)
            ]
            assert found[:2] == [401, 403], call
            assert found[2] not in (401, 403), call
