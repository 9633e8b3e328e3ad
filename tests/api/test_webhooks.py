"""Webhooks and messages over HTTP."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

import api.webhooks
from gridline import limits
from gridline.db.work import unit_of_work
from gridline.notices import delivering, messages
from gridline.notices.delivering import Sender
from gridline.notices.outbox import ENDS
from gridline.settings import read_settings
from tests.api.conftest import Customer, end
from tests.gridline.notices.receiver import Receiver, receiving

HOOKS = "/gridline/v1/webhooks"
URL = "https://93.184.215.14/hooks"
LOOPBACK = "127.0.0.0/8"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver on loopback, which the operator allows."""
    chosen = replace(read_settings({}), webhook_networks=LOOPBACK)
    monkeypatch.setattr(api.webhooks, "settings", lambda: chosen)
    with receiving() as one:
        yield one


def made(ann: Customer, **more: Any) -> dict[str, Any]:
    """A new webhook."""
    answer = ann.http.post(HOOKS, json={"url": URL, **more})
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def error(answer: httpx.Response) -> tuple[int, str | None, str | None]:
    """Status, code and parameter of a refusal."""
    told = answer.json()["error"]
    return answer.status_code, told["code"], told["param"]


def test_a_webhook_is_made_shown_changed_and_deleted(ann: Customer) -> None:
    """Its secret is in the answer of its creation alone; what is left out of a change stays."""
    webhook = made(ann)
    secret = webhook.pop("secret")
    assert secret.startswith("whsec_")
    assert webhook["events"] == list(ENDS)
    address = f"{HOOKS}/{webhook['id']}"
    assert ann.http.get(address).json() == webhook
    assert ann.http.get(HOOKS).json()["data"] == [webhook]
    changed = ann.http.post(address, json={"events": ["batch.failed"], "disabled": True}).json()
    assert changed["disabled_at"]
    assert changed | {"disabled_at": None} == webhook | {
        "events": ["batch.failed"],
        "disabled": True,
        "disabled_reason": "disabled_by_customer",
    }
    back = ann.http.post(address, json={"disabled": False, "url": "https://93.184.215.14/other"}).json()
    assert (back["disabled"], back["disabled_reason"], back["url"][-5:]) == (False, None, "other")
    assert secret not in ann.http.get(HOOKS).text
    assert ann.http.delete(address).json() == {
        "id": webhook["id"],
        "object": "gridline.webhook",
        "deleted": True,
    }
    assert error(ann.http.delete(address)) == (404, "not_found", "webhook_id")
    assert ann.http.get(HOOKS).json()["data"] == []


def test_an_ended_batch_is_told_and_logged(ann: Customer, receiver: Receiver) -> None:
    """From the create call to a verified event: the SDK unwraps it, and the deliveries say what came of it."""
    webhook = made(ann, url=receiver.url)
    receiver.answer = lambda _: 500
    batch_id = str(ann.batch()["id"])
    end(batch_id, "failed")
    delivering.deliver(Sender(LOOPBACK))
    (got,) = receiver.got
    event = ann.sdk.webhooks.unwrap(got.body, got.headers, secret=webhook["secret"])
    assert event.type == "batch.failed"
    assert event.data.id == batch_id
    (shown,) = ann.http.get(f"{HOOKS}/{webhook['id']}/deliveries").json()["data"]
    assert (shown["id"], shown["data"], shown["state"]) == (event.id, {"id": batch_id}, "pending")
    assert (shown["attempts"], shown["last_status"]) == (1, 500)
    assert shown["next_attempt_at"] >= shown["last_attempt_at"]
    assert ann.http.get(f"{HOOKS}/{webhook['id']}").json()["failing_since"]


def test_deliveries_come_newest_first_in_pages(ann: Customer, receiver: Receiver) -> None:
    """Pages as of every list, of test events here; a disabled webhook is not tested, and a minute has ten tests."""
    webhook = made(ann, url=receiver.url)
    address = f"{HOOKS}/{webhook['id']}"
    sent = [ann.http.post(f"{address}/test").json()["id"] for _ in range(3)]
    delivering.deliver(Sender(LOOPBACK))
    first = ann.http.get(f"{address}/deliveries?limit=2").json()
    assert [one["id"] for one in first["data"]] == sent[:0:-1]
    same = {"id": "", "created_at": 0, "last_attempt_at": 0, "delivered_at": 0}
    assert first["data"][0] | same == first["data"][1] | same
    assert (first["has_more"], first["data"][0]["state"]) == (True, "delivered")
    rest = ann.http.get(f"{address}/deliveries?after={first['last_id']}").json()
    assert ([one["id"] for one in rest["data"]], rest["has_more"]) == (sent[:1], False)
    for cursor in ("evt_" + "0" * 24, "x"):
        assert error(ann.http.get(f"{address}/deliveries?after={cursor}")) == (404, "not_found", "after")
    for _ in range(limits.WEBHOOK_TESTS_PER_MINUTE_MAX - 3):
        assert ann.http.post(f"{address}/test").status_code == 200
    assert error(ann.http.post(f"{address}/test")) == (429, "rate_limit_exceeded", None)
    ann.http.post(address, json={"disabled": True})
    assert error(ann.http.post(f"{address}/test")) == (409, "conflict", "webhook_id")


def test_a_secret_is_rotated(ann: Customer) -> None:
    """The new one is shown once, beside the time until which the old one signs, too."""
    webhook = made(ann)
    rotated = ann.http.post(f"{HOOKS}/{webhook['id']}/rotate").json()
    assert rotated["secret"] != webhook["secret"]
    day = limits.WEBHOOK_OLD_SECRET_HOURS * 3600
    assert rotated["old_secret_until"] - webhook["created_at"] in range(day, day + 60)


def test_an_account_has_ten_webhooks(ann: Customer, bob: Customer) -> None:
    """The eleventh is refused with the limit and what helps; another account's count for themselves."""
    for _ in range(limits.WEBHOOKS_PER_ACCOUNT_MAX):
        made(ann)
    answer = ann.http.post(HOOKS, json={"url": URL})
    assert error(answer) == (429, "limit_exceeded", None)
    assert answer.json()["error"]["limit"] == {
        "name": "webhooks",
        "limit": 10,
        "current": 10,
        "unit": "webhooks",
    }
    made(bob)


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({}, "missing_required_parameter", "url"),
        ({"url": 1}, "invalid_type", "url"),
        ({"url": "https://x/" + "a" * 2048}, "string_above_max_length", "url"),
        ({"url": "http://127.0.0.1:8000/"}, "invalid_value", "url"),
        ({"url": "http://169.254.169.254/latest/meta-data"}, "invalid_value", "url"),
        ({"url": "http://[::1]/"}, "invalid_value", "url"),
        ({"url": "ftp://93.184.215.14/"}, "invalid_value", "url"),
        ({"url": URL, "events": []}, "empty_array", "events"),
        ({"url": URL, "events": ["batch.started"]}, "invalid_value", "events[0]"),
        ({"url": URL, "events": "batch.failed"}, "invalid_type", "events"),
        ({"url": URL, "secret": "mine"}, "unknown_parameter", "secret"),
        ({"url": URL, "account_id": "acct_x"}, "unknown_parameter", "account_id"),
    ],
)
def test_what_cannot_be_a_webhook_is_refused(
    ann: Customer, body: dict[str, Any], code: str, param: str
) -> None:
    """Each refusal names the parameter, and nothing is made; the same when one is changed."""
    assert error(ann.http.post(HOOKS, json=body)) == (400, code, param)
    assert ann.http.get(HOOKS).json()["data"] == []
    if body:
        webhook = made(ann)
        assert error(ann.http.post(f"{HOOKS}/{webhook['id']}", json=body)) == (400, code, param)
        assert ann.http.get(f"{HOOKS}/{webhook['id']}").json()["url"] == URL


def test_disabled_is_a_boolean(ann: Customer) -> None:
    """No text or number stands for it."""
    webhook = made(ann)
    assert error(ann.http.post(f"{HOOKS}/{webhook['id']}", json={"disabled": "no"})) == (
        400,
        "invalid_type",
        "disabled",
    )


def test_a_message_is_stored_with_its_batch(ann: Customer, bob: Customer) -> None:
    """What Ann writes about her batch the operator reads; another's batch is as if there were none."""
    batch_id = str(ann.batch()["id"])
    text = "Why?\n\x1b[31mred"
    answer = ann.http.post("/gridline/v1/messages", json={"text": text, "batch_id": batch_id})
    assert (answer.json()["text"], answer.json()["batch_id"]) == (text, batch_id)
    with unit_of_work() as work:
        newest = messages.latest(work, limit=1)[0]
    assert (newest.account_id, newest.batch_id, newest.text) == (ann.account_id, batch_id, text)
    answers = [
        bob.http.post("/gridline/v1/messages", json={"text": "x", "batch_id": one})
        for one in (batch_id, "batch_" + "0" * 24, "\x00")
    ]
    assert {error(one) for one in answers} == {(404, "not_found", "batch_id")}


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({}, "missing_required_parameter", "text"),
        ({"text": "x" * 5_001}, "string_above_max_length", "text"),
        ({"text": " \n"}, "invalid_value", "text"),
        ({"text": "a\x00b"}, "invalid_value", "text"),
        ({"text": ["a"]}, "invalid_type", "text"),
        ({"text": "a", "to": "x"}, "unknown_parameter", "to"),
    ],
)
def test_what_is_no_message_is_refused(ann: Customer, body: dict[str, Any], code: str, param: str) -> None:
    """Up to 5,000 characters of text; each refusal names the parameter."""
    assert error(ann.http.post("/gridline/v1/messages", json=body)) == (400, code, param)


def test_an_account_writes_twenty_messages_an_hour(ann: Customer, bob: Customer) -> None:
    """The next one waits, and says for how long; others write meanwhile."""
    for _ in range(limits.MESSAGES_PER_HOUR_MAX):
        assert ann.http.post("/gridline/v1/messages", json={"text": "x" * 5_000}).status_code == 200
    answer = ann.http.post("/gridline/v1/messages", json={"text": "x"})
    assert error(answer) == (429, "rate_limit_exceeded", None)
    assert int(answer.headers["retry-after"]) > 0
    assert bob.http.post("/gridline/v1/messages", json={"text": "x"}).status_code == 200
