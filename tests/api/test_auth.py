"""Who may call what: tokens, scopes, and the same answer for everything that is wrong."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import openai
import pytest
from sqlalchemy import Engine, text

from gridline import limits
from gridline.customers import tokens
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.storage.objects import Store
from tests.api.conftest import Customer, customer

READING = [
    "/v1/files",
    "/v1/files/x",
    "/v1/files/x/content",
    "/v1/batches",
    "/v1/batches/x",
    "/v1/models",
    "/v1/models/x",
    "/gridline/v1/account",
    "/gridline/v1/batches/x/receipt",
    "/gridline/v1/batches/x/events",
]
WRITING = [
    ("POST", "/v1/files"),
    ("DELETE", "/v1/files/x"),
    ("POST", "/v1/batches"),
    ("POST", "/v1/batches/x/cancel"),
]
ROUTES = [("GET", path) for path in READING] + WRITING


@dataclass
class Scoped:
    """Customers whose token has one scope."""

    reader: Customer
    writer: Customer


@pytest.fixture
def scoped(address: str, database: Engine, store: Store) -> Iterator[Scoped]:
    """A token that reads and one that writes."""
    readers, writers = customer(address, "r", ("read",)), customer(address, "w", ("routing:write",))
    yield Scoped(next(readers), next(writers))
    for one in (readers, writers):
        next(one, None)


def wrong(ann: Customer) -> dict[str, list[str]]:
    """Authorization headers that open nothing."""
    return {
        "missing": [],
        "empty": [""],
        "no token": ["Bearer"],
        "other scheme": [f"Basic {ann.token}"],
        "bare": [ann.token],
        "extra space": [f"Bearer  {ann.token}"],
        "trailing": [f"Bearer {ann.token} x"],
        "twice": [f"Bearer {ann.token}", f"Bearer {ann.token}"],
        "unknown": ["Bearer " + "gl_live_" + "a" * 38],
        "cut": [f"Bearer {ann.token[:-1]}"],
        "not ASCII": ["Bearer gl_live_é"],
    }


def test_without_a_good_token_every_route_says_401(
    ann: Customer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing, malformed, unknown: 401 invalid_api_key on each route, as JSON, before anything else is looked at."""
    monkeypatch.setattr(limits, "WRONG_TOKENS_PER_MINUTE_MAX", 10_000)
    with httpx.Client(base_url=address, verify=False) as http:
        for method, path in ROUTES:
            for name, values in wrong(ann).items():
                headers = [("Authorization", value.encode()) for value in values]
                answer = http.request(method, path, headers=headers)  # type: ignore[arg-type]
                assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key"), name
                assert answer.headers["www-authenticate"] == "Bearer"
                assert answer.headers["x-should-retry"] == "false"
        assert http.get(f"/v1/files?api_key={ann.token}&token={ann.token}").status_code == 401


def test_unknown_and_revoked_get_the_same_answer(ann: Customer, address: str) -> None:
    """Nobody learns from the answer whether a token once existed; revoking works from the next request on."""
    with unit_of_work() as work:
        token_id = tokens.authenticate(work, ann.token).id
        tokens.revoke(work, ann.account_id, token_id, actor="operator:t")
    revoked = ann.http.get("/v1/files")
    unknown = httpx.get(f"{address}/v1/files", headers={"Authorization": "Bearer gl_live_" + "a" * 38})
    assert revoked.status_code == unknown.status_code == 401
    assert revoked.content == unknown.content
    assert sorted(revoked.headers) == sorted(unknown.headers)
    with pytest.raises(openai.AuthenticationError) as caught:
        ann.sdk.files.list()
    assert caught.value.code == "invalid_api_key"


def test_the_scheme_may_be_written_in_any_case(ann: Customer) -> None:
    """bearer, Bearer and BEARER are the same scheme."""
    for scheme in ("bearer", "BEARER"):
        answer = ann.http.get("/v1/files", headers={"Authorization": f"{scheme} {ann.token}"})
        assert answer.status_code == 200


def test_scopes_open_what_they_name_and_nothing_else(scoped: Scoped) -> None:
    """Read reads, routing:write writes; the other half is 403 insufficient_permissions, naming the scope."""
    for method, path in ROUTES:
        writes = method != "GET"
        has, lacks = (scoped.writer, scoped.reader) if writes else (scoped.reader, scoped.writer)
        refused = lacks.http.request(method, path)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (403, "insufficient_permissions"), path
        assert ("routing:write" if writes else "read") in error["message"]
        assert has.http.request(method, path).status_code not in (401, 403), path


def test_a_reading_token_cannot_reach_a_file_by_a_wrong_method(scoped: Scoped) -> None:
    """HEAD reads like GET; other methods on a known address are 405, whoever asks."""
    assert scoped.reader.http.head("/v1/files").status_code == 200
    assert scoped.reader.http.put("/v1/files").status_code == 405


def test_a_revocation_elsewhere_holds_within_five_seconds(
    ann: Customer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred clients are calling when another process revokes: what is sent 5 seconds later is a 401, for each."""
    monkeypatch.setattr(limits, "WRONG_TOKENS_PER_MINUTE_MAX", 10_000)
    with unit_of_work() as work:
        work.session.get_one(Account, ann.account_id).requests_per_minute_max = 1_000_000
    calling = threading.Barrier(101, timeout=60)
    revoked = threading.Event()
    let_in: list[float] = []

    def call_until_refused() -> int:
        headers = {"Authorization": f"Bearer {ann.token}"}
        with httpx.Client(base_url=address, headers=headers, verify=False, timeout=60) as http:
            status = http.get("/v1/batches").status_code
            calling.wait()
            until = time.monotonic() + 60
            while status == 200 and time.monotonic() < until:
                begun = time.monotonic()
                status = http.get("/v1/batches").status_code
                if status == 200 and revoked.is_set():
                    let_in.append(begun)
        return status

    with ThreadPoolExecutor(100) as pool:
        clients = [pool.submit(call_until_refused) for _ in range(100)]
        calling.wait()
        with unit_of_work() as work:
            work.session.execute(
                text("UPDATE tokens SET revoked_at = clock_timestamp() WHERE account_id = :id"),
                {"id": ann.account_id},
            )
        moment = time.monotonic()
        revoked.set()
        assert [client.result() for client in clients] == [401] * 100
    assert [begun - moment for begun in let_in if begun > moment + 5] == []
