"""The reference: the document and its page without a token, and every call as the document says."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest
from jsonschema_rs import validator_for
from sqlalchemy import Engine, select
from sqlalchemy.exc import OperationalError

from api.app import create_app
from api.reference.pages import ASSETS
from gpu_jobs.answers import Answerer
from gpu_jobs.partition import Line, Spec
from gridline.catalog.cards import catalogue
from gridline.customers import tokens
from gridline.db import work as works
from gridline.db.work import unit_of_work
from gridline.ledger import holding
from gridline.lines import chat, embeddings
from gridline.lines.errors import LineRefused
from gridline.lines.results import missing_line, response_line
from gridline.lines.schema_judge import SchemaJudge
from gridline.notices import addresses, mail
from gridline.notices.tables import MailChoice
from gridline.profiles.profile import FOLDER, load
from gridline.storage.objects import Store
from tests.api import described
from tests.api.conftest import HELD_TO_THE_DOCUMENT, LINES, MODEL, Customer
from tests.api.people import Person, credentials, signed_up

DIALECTS = sorted(one.stem for one in FOLDER.glob("*.toml"))
DOCUMENT = described.described().document
SCHEMAS = DOCUMENT["components"]["schemas"]
CALLS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
    if method != "servers"
}
NO_JUDGE = cast("SchemaJudge", None)
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def url(path: str) -> str:
    """A path of the document as it is called, each variable an id of the right shape that nothing has."""
    based = "servers" not in DOCUMENT["paths"][path]
    for variable in re.findall(r"{(\w+)}", path):
        kinds = {
            "file_id": "file-", "batch_id": "batch_", "upload_id": "upload_", "webhook_id": "whk_", "token_id": "tok_",
        }  # fmt: skip
        prefix = kinds.get(variable, "none-")
        path = path.replace(f"{{{variable}}}", prefix + "0" * 24)
    return f"/v1{path}" if based else path


@pytest.fixture
def eve(address: str, database: Engine, store: Store) -> Iterator[Person]:
    """Somebody with a session."""
    with signed_up(address, "eve") as one:
        yield one


@pytest.fixture
def stranger(address: str) -> Iterator[httpx.Client]:
    """A client without a token; its answers too are held to the document."""
    with httpx.Client(base_url=address, verify=False, event_hooks=HELD_TO_THE_DOCUMENT) as client:
        yield client


def test_the_document_needs_no_token_and_is_the_code(stranger: httpx.Client) -> None:
    """/openapi.json is what the routes say of themselves, as JSON, for anybody."""
    answer = stranger.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == DOCUMENT


def test_the_page_holds_no_script_and_no_other_host(stranger: httpx.Client) -> None:
    """/docs loads files from this server only, and its policy forbids all else; each file it names is there."""
    page = stranger.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert not re.search(r"https?:|//|<style|\son\w+=|<script>", page.text.removeprefix("<!DOCTYPE html>"))
    named = re.findall(r'(?:src|href)="docs/([^"]+)"', page.text)
    assert set(named) == set(ASSETS)
    for name in named:
        asset = stranger.get(f"/docs/{name}")
        assert (asset.status_code, asset.headers["content-type"]) == (200, ASSETS[name][1])
        assert (
            stranger.get(f"/docs/{name}", headers={"If-None-Match": asset.headers["etag"]}).status_code == 304
        )
    for name in ("", "index.html", "swagger-ui.js", "..%2fpages.py", "%2e%2e/pages.py", "page.js/"):
        assert stranger.get(f"/docs/{name}").json()["error"]["code"] == "unknown_url"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_its_own(dialect: str) -> None:
    """Base paths, endpoints and windows of the document are those of the profile; the page is there too."""
    profile = load(dialect)
    client = create_app(profile).test_client()
    shown = client.get("/openapi.json").get_json()
    assert [one["url"] for one in shown["servers"]] == list(profile.base_paths)
    create = shown["components"]["schemas"]["BatchCreate"]["properties"]
    assert create["endpoint"]["enum"] == list(profile.endpoints)
    assert create["completion_window"]["enum"] == list(profile.windows)
    assert (
        f"{profile.file_bytes_max:,}"
        in shown["components"]["schemas"]["FileUpload"]["properties"]["file"]["description"]
    )
    assert f':8000{profile.base_paths[0]}"' in shown["info"]["description"]
    assert client.get("/docs").status_code == 200


def a_users_calls(address: str) -> None:
    """What only a session may call, each once."""
    with signed_up(address, "eve") as eve:
        eve.http.post("/gridline/v1/sessions", json=credentials(eve.email))
        eve.http.delete(f"/gridline/v1/tokens/{eve.token()['id']}")
        eve.http.post("/gridline/v1/budget", json={"limit": "5"})
        eve.http.delete("/gridline/v1/budget")
        eve.http.post("/gridline/v1/mail_notices")
        with unit_of_work() as work:
            code = work.session.scalars(select(MailChoice.code).order_by(MailChoice.asked_at.desc())).first()
        eve.http.post("/gridline/v1/mail_notices/confirm", json={"code": code})
        for path in ("mail_notices", "tokens", "session"):
            eve.http.get(f"/gridline/v1/{path}")
        eve.http.delete("/gridline/v1/mail_notices")
        eve.http.delete("/gridline/v1/sessions")


def test_a_day_of_calls_is_as_described(
    ann: Customer, qualified: None, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call answers well at least once, as the document says: the clients of these tests hold each answer to it."""
    seen = described.described().seen
    seen.clear()
    monkeypatch.setattr(mail, "reaches_users", lambda _config: True)
    upload = ann.http.post(
        "/v1/uploads",
        json={
            "filename": "r.jsonl",
            "purpose": "batch",
            "bytes": len(LINES),
            "mime_type": "application/jsonl",
        },
    ).json()["id"]
    part = ann.http.post(f"/v1/uploads/{upload}/parts", files={"data": ("p", LINES)}).json()["id"]
    ann.http.post(f"/v1/uploads/{upload}/complete", json={"part_ids": [part]})
    other = ann.sdk.uploads.create(filename="r.jsonl", purpose="batch", bytes=9, mime_type="text/plain")
    ann.sdk.uploads.cancel(other.id)
    file_id = ann.file()
    ann.http.get(f"/v1/files/{file_id}/content", headers={"Range": "bytes=0-9"})
    batch_id = ann.batch(file_id, metadata={"a": "b"})["id"]
    card = catalogue()[MODEL].copy()
    with unit_of_work() as work:
        holding.place(work, batch_id=str(batch_id), account_id=ann.account_id, amount_nanos=1_000, card=card)
    paths = [
        "/v1/files", f"/v1/files/{file_id}", f"/v1/files/{file_id}/content", "/v1/batches", f"/v1/batches/{batch_id}",
        "/v1/models", f"/v1/models/{MODEL}", "/gridline/v1/account",
        "/gridline/v1/batches", f"/gridline/v1/batches/{batch_id}",
        f"/gridline/v1/batches/{batch_id}/receipt", f"/gridline/v1/batches/{batch_id}/events",
        f"/gridline/v1/batches/{batch_id}/results", f"/gridline/v1/batches/{batch_id}/waits", "/gridline/v1/entries", "/gridline/v1/statement",
        "/gridline/v1/statement?format=csv", "/gridline/v1/usage", "/gridline/v1/pricing", "/gridline/v1/platform", "/healthz", "/readyz", "/metrics", "/openapi.json",
    ]  # fmt: skip
    assert {path: ann.http.get(path).status_code for path in paths} == dict.fromkeys(paths, 200)
    ann.http.post(f"/v1/batches/{batch_id}/cancel")
    hooks = "/gridline/v1/webhooks"
    hook = ann.http.post(hooks, json={"url": "https://93.184.215.14/hooks"}).json()["id"]
    for path in (f"{hooks}/{hook}/test", f"{hooks}/{hook}/rotate"):
        ann.http.post(path)
    for path in (hooks, f"{hooks}/{hook}", f"{hooks}/{hook}/deliveries"):
        ann.http.get(path)
    ann.http.post(f"{hooks}/{hook}", json={"disabled": True})
    ann.http.delete(f"{hooks}/{hook}")
    ann.http.post("/gridline/v1/messages", json={"text": "Hello", "batch_id": batch_id})
    # Of lines for another endpoint: no model has to be prepared to answer that.
    estimate = {"input_file_id": file_id, "endpoint": "/v1/embeddings", "completion_window": "24h"}
    ann.http.post("/gridline/v1/estimates", json=estimate)
    ann.http.delete(f"/v1/files/{ann.file()}")
    a_users_calls(address)
    good = {
        (name, int(status))
        for name, (_, _, one) in CALLS.items()
        for status in one["responses"]
        if status.startswith("2")
    }
    assert good - seen == set()


def test_every_call_refuses_as_described(
    ann: Customer, eve: Person, stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a token, with the wrong scope, with a broken body, for what is not there, without a database."""
    half = {
        method: {"Authorization": f"Bearer {half_a_token(ann, method)}"}
        for method in ("GET", "POST", "DELETE")
    }
    # The document's example of a webhook goes to a host that this machine may not know.
    monkeypatch.setattr(addresses, "lookup", lambda host, port: ("93.184.215.14",))
    monkeypatch.setattr(mail, "reaches_users", lambda _config: True)
    wrong = []
    for name, (method, path, operation) in CALLS.items():
        told, found = operation["responses"], {}
        # What no token opens is tried with a session, and refused to a token with either scope.
        client = eve.http if {"session": []} in operation["security"] else ann.http
        if operation["security"]:
            found[401] = stranger.request(method, url(path))
            found[403] = stranger.request(method, url(path), headers=half[method])
        if "{" in path:
            found[404] = client.request(method, url(path))
        elif "requestBody" in operation:
            (kind,) = operation["requestBody"]["content"]
            found[400] = client.request(method, url(path), content=b"{", headers={"Content-Type": kind})
            found[415] = client.request(
                method, url(path), content=b"{}", headers={"Content-Type": "text/plain"}
            )
        if "503" in told:
            (content,) = operation.get("requestBody", {}).get("content", {"": {}}).values()
            with monkeypatch.context() as patch:
                patch.setattr(works, "app_engine", away)
                found[503] = client.request(method, url(path), json=content.get("example"))
        wrong += [(name, status, one.text) for status, one in found.items() if one.status_code != status]
        wrong += [(name, status, "undocumented") for status in found if str(status) not in told]
    assert wrong == []


def away() -> None:
    """What a lost database does."""
    raise OperationalError("SELECT 1", {}, Exception("gone"))


def half_a_token(customer: Customer, method: str) -> str:
    """A token of the account that has the one scope that the method does not need."""
    scope = tokens.WRITE if method == "GET" else tokens.READ
    with unit_of_work() as work:
        _, text = tokens.issue(work, customer.account_id, "half", scopes=(scope,))
    return text


def fits(component: str, value: object) -> bool:
    """Whether a value is an instance of a component."""
    known = {"components": {"schemas": SCHEMAS}}
    return bool(validator_for({"$ref": f"#/components/schemas/{component}"} | known).is_valid(value))


def test_lines_in_are_as_described() -> None:
    """The bodies' keys are those that the readers allow; good lines fit, and unknown keys do not."""
    assert set(SCHEMAS["ChatBody"]["properties"]) == chat.ALLOWED
    assert set(SCHEMAS["EmbeddingBody"]["properties"]) == embeddings.ALLOWED
    for line in LINES.splitlines():
        one = json.loads(line)
        assert fits("InputLine", one)
        assert not fits("InputLine", one | {"more": 1})
        assert not fits("InputLine", one | {"body": one["body"] | {"tools": []}})


def bounds() -> Iterator[tuple[str, float]]:
    """Each numeric key of a chat body with values at its bounds and just outside."""
    for key, schema in SCHEMAS["ChatBody"]["properties"].items():
        for bound in ("minimum", "exclusiveMinimum", "maximum"):
            if bound in schema:
                yield from ((key, schema[bound] + step) for step in (-1, 0, 1))


@pytest.mark.parametrize(("key", "value"), list(bounds()))
def test_ranges_are_those_that_are_read(key: str, value: float) -> None:
    """At each bound and just outside, the document and the reader of lines agree."""
    body = CHAT | {key: value, "logprobs": True}
    try:
        chat.read_chat(body, catalogue()[MODEL], NO_JUDGE)
        taken = True
    except LineRefused:
        taken = False
    assert fits("ChatBody", body) is taken


def test_lines_out_are_as_described() -> None:
    """What the GPU job and the collation write fits: delivered chat and embeddings, refused, and never run."""
    chat_answer: dict[str, Any] = {
        "created": 1,
        "choices": [
            {
                "index": 0,
                "message": {"content": "Hi"},
                "logprobs": {
                    "content": [{"token": "Hi", "logprob": -0.1, "bytes": [72], "top_logprobs": []}]
                },
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    vectors = {"data": [{"index": 0, "embedding": [0.1]}], "usage": {"prompt_tokens": 3}}
    bodies = [
        answered("/v1/chat/completions", CHAT, chat_answer),
        answered("/v1/embeddings", {"model": "m", "input": "a"}, vectors),
    ]
    lines = [
        response_line("b", n, "a", status=status, request="req_1", body=body)
        for n, (status, body) in enumerate(bodies)
    ]
    lines += [
        missing_line("b", 5, "a", code=code, message="…") for code in ("batch_cancelled", "server_error")
    ]
    for line in lines:
        assert fits("OutputLine", json.loads(line)), line
        assert not fits("OutputLine", json.loads(line) | {"response": {}})


def answered(endpoint: str, request: dict[str, Any], answer: dict[str, Any]) -> tuple[int, str]:
    """Status and body that the GPU job makes of an engine's answer."""
    spec = Spec(
        batch_id="b", partition=0, endpoint=endpoint, model={"id": "m"}, lines_key="", line_seconds_max=1
    )
    line = Line(line=0, custom_id="a", body=json.dumps(request), input_tokens=3)
    row = Answerer(spec).delivered(line, json.dumps(answer).encode())
    return row.status_code, row.body
