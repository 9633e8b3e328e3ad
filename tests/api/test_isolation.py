"""No object of one customer can be told, reached or changed by another: every route, foreign id against random id."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from flask import Flask

from api.app import create_app
from tests.api.conftest import LINES, Customer

RANDOM = {
    "batch_id": "batch_" + "0" * 24,
    "file_id": "file-" + "0" * 24,
    "upload_id": "upload_" + "0" * 24,
    "webhook_id": "whk_" + "0" * 24,
}
"""Ids that nobody has, by the name that routes give them."""
PUBLIC = {"model", "name", "token_id"}
"""What all customers share, and what no token reaches (tests/api/test_tokens.py keeps tokens apart)."""
BODIES: dict[str, dict[str, Any]] = {
    "/parts": {"files": {"data": ("part", b"{}\n")}},
    "/complete": {"json": {"part_ids": ["part_" + "0" * 24]}},
}


def routes(app: Flask) -> Iterator[tuple[str, str, str]]:
    """Method, address and the name of the id of every route that names somebody's object."""
    for rule in app.url_map.iter_rules():
        for argument in rule.arguments - PUBLIC:
            for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
                yield method, rule.rule.replace(f"<{argument}>", "{id}"), argument


@pytest.fixture
def owned(ann: Customer) -> dict[str, str]:
    """One object of each kind, all Ann's."""
    upload = {
        "filename": "u.jsonl",
        "purpose": "batch",
        "bytes": len(LINES),
        "mime_type": "application/jsonl",
    }
    made = ann.http.post("/v1/uploads", json=upload)
    batch_id = str(ann.batch()["id"])
    hook = ann.http.post("/gridline/v1/webhooks", json={"url": "https://93.184.215.14/hooks"})
    return {
        "batch_id": batch_id,
        "file_id": ann.file(),
        "upload_id": made.json()["id"],
        "webhook_id": hook.json()["id"],
    }


def seen(answer: httpx.Response, *ids: str) -> tuple[int, str, dict[str, str]]:
    """An answer without what differs anyway: the id that was asked for, the request's own, and the figures."""
    text = answer.text
    for one in ids:
        text = text.replace(one, "ID")
    own = {"x-request-id", "openai-processing-ms", "date", "content-length"}
    headers = {
        name: value
        for name, value in answer.headers.items()
        if name not in own and not name.startswith("x-ratelimit-")
    }
    return answer.status_code, text, headers


def test_a_strangers_object_is_like_none(ann: Customer, bob: Customer, owned: dict[str, str]) -> None:
    """Every verb on every object: what is another's gets the very 404 that a random id gets, and stays as it is."""
    before = _state(ann, owned)
    checked = set()
    for method, address, argument in routes(create_app()):
        assert argument in RANDOM, f"say in this test what {argument} of {address} is"
        body = next((one for end, one in BODIES.items() if address.endswith(end)), {})
        foreign = bob.http.request(method, address.replace("{id}", owned[argument]), **body)
        random = bob.http.request(method, address.replace("{id}", RANDOM[argument]), **body)
        assert foreign.status_code == 404, (method, address, foreign.text)
        assert seen(foreign, owned[argument]) == seen(random, RANDOM[argument]), (method, address)
        checked.add(argument)
    assert checked == set(RANDOM)
    assert _state(ann, owned) == before


def test_a_strangers_id_is_no_cursor_and_no_input(
    ann: Customer, bob: Customer, owned: dict[str, str]
) -> None:
    """Ids in queries and bodies: another's is answered as a random one is, and lists never show it."""
    for kind, address in (
        ("file_id", "/v1/files?after="),
        ("batch_id", "/v1/batches?after="),
        ("batch_id", "/gridline/v1/batches?after="),
    ):
        foreign = bob.http.get(address + owned[kind])
        assert foreign.status_code == 404
        assert seen(foreign, owned[kind]) == seen(bob.http.get(address + RANDOM[kind]), RANDOM[kind])
    theirs = ann.http.get("/gridline/v1/entries").json()["first_id"]
    none = "txn_" + "0" * 24
    foreign, random = (bob.http.get(f"/gridline/v1/entries?after={one}") for one in (theirs, none))
    assert foreign.status_code == 404
    assert seen(foreign, theirs) == seen(random, none)
    wanted = {"endpoint": "/v1/embeddings", "completion_window": "24h"}
    for address in ("/v1/batches", "/gridline/v1/estimates"):
        foreign = bob.http.post(address, json={**wanted, "input_file_id": owned["file_id"]})
        random = bob.http.post(address, json={**wanted, "input_file_id": RANDOM["file_id"]})
        assert foreign.status_code == 404
        assert seen(foreign, owned["file_id"]) == seen(random, RANDOM["file_id"])
    for address in ("/v1/files", "/v1/batches", "/gridline/v1/batches"):
        assert bob.http.get(address).json()["data"] == []


def test_a_strangers_key_makes_another_batch(ann: Customer, bob: Customer) -> None:
    """Idempotency keys are an account's own: the same key of another customer finds nothing of the first."""
    key = {"Idempotency-Key": "shared"}
    batches = set()
    for one in (ann, bob):
        wanted = {"input_file_id": one.file(), "endpoint": "/v1/embeddings", "completion_window": "24h"}
        batches.add(one.http.post("/v1/batches", json=wanted, headers=key).json()["id"])
    assert len(batches) == 2


def test_a_strangers_part_completes_nothing(ann: Customer, bob: Customer, owned: dict[str, str]) -> None:
    """A part of another customer's upload is refused as a part that does not exist."""
    files = {"data": ("part", LINES)}
    part = ann.http.post(f"/v1/uploads/{owned['upload_id']}/parts", files=files).json()["id"]
    wanted = {
        "filename": "u.jsonl",
        "purpose": "batch",
        "bytes": len(LINES),
        "mime_type": "application/jsonl",
    }
    upload = bob.http.post("/v1/uploads", json=wanted).json()["id"]
    answers = {}
    for one in (part, "part_" + "0" * 24):
        answers[one] = bob.http.post(f"/v1/uploads/{upload}/complete", json={"part_ids": [one]})
        assert answers[one].status_code in (400, 404)
    assert len({str(seen(answer, one)) for one, answer in answers.items()}) == 1


def _state(customer: Customer, owned: dict[str, str]) -> list[str]:
    """What the owner sees of the objects."""
    batch = customer.http.get(f"/v1/batches/{owned['batch_id']}")
    content = customer.http.get(f"/v1/files/{owned['file_id']}/content")
    cancel = customer.http.get("/gridline/v1/account")
    hook = customer.http.get(f"/gridline/v1/webhooks/{owned['webhook_id']}")
    return [batch.text, content.text, cancel.text, hook.text]
