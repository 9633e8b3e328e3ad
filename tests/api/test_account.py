"""The account, and what the platform says about itself."""

import logging

import pytest

from gridline import ids
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from tests.api.conftest import LINES, Customer


def test_the_account_shows_limits_use_and_balance(ann: Customer) -> None:
    """Amounts are decimal strings with nine digits; use is live."""
    ann.batch()
    shown = ann.http.get("/gridline/v1/account").json()
    assert (shown["id"], shown["object"]) == (ann.account_id, "account")
    assert ids.is_id("account", shown["id"])
    assert shown["name"].startswith("ann ")
    daily = shown["limits"].pop("daily_credits")
    assert (daily["limit"], daily["current"]) == ("100.000000000", "0.000000000")
    assert daily["resets_at"] % 86_400 == 0
    assert shown["limits"] == {
        "open_batches": {"limit": 2, "current": 1},
        "files": {"limit": 500, "current": 1},
        "stored_bytes": {"limit": 20_000_000_000, "current": len(LINES)},
        "leases": {"limit": 4},
        "monthly_budget": None,
        "retention_days": None,
    }
    assert shown["balance"] == {"available": "10.000000000", "held": "0.000000000"}


def test_a_used_up_day_refuses_creates(ann: Customer) -> None:
    """At its daily limit an account's create is a 429 that SDKs do not repeat, with limit, use and reset; nothing is made."""
    file_id = ann.file()
    with unit_of_work() as work:
        work.session.get_one(Account, ann.account_id).daily_credits_nanos_max = 0
    wanted = {"input_file_id": file_id, "endpoint": "/v1/embeddings", "completion_window": "24h"}
    refused = ann.http.post("/v1/batches", json=wanted)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], refused.headers["x-should-retry"]) == (
        429, "limit_exceeded", "false",
    )  # fmt: skip
    today = ann.http.get("/gridline/v1/account").json()["limits"]["daily_credits"]
    assert error["limit"] == {"name": "daily_credits", "unit": "credits", **today}
    assert today["current"] == today["limit"] == "0.000000000"
    assert ann.http.get("/v1/batches").json()["data"] == []


def test_health_and_figures_need_no_token(ann: Customer, address: str) -> None:
    """Alive, ready, and metrics by route pattern, never by address or customer."""
    file_id = ann.file()
    ann.http.get(f"/v1/files/{file_id}")
    bare = ann.http
    bare.headers.pop("Authorization")
    assert bare.get("/healthz").json() == {"status": "ok"}
    assert bare.get("/readyz").json()["status"] == "ok"
    page = bare.get("/metrics").text
    assert 'gridline_http_requests_total{method="GET",route="/v1/files/<file_id>",status="200"}' in page
    assert file_id not in page
    assert ann.account_id not in page


def test_nothing_a_customer_sent_is_logged(ann: Customer, caplog: pytest.LogCaptureFixture) -> None:
    """Good and bad calls at DEBUG: no token, no prompt, no name, no metadata in any record."""
    canary = "Zq7canary"
    with caplog.at_level(logging.DEBUG, logger="gridline"):
        file_id = ann.file(LINES.replace(b"Say ok", canary.encode()))
        ann.http.post("/v1/files", files={"file": (f"{canary}.txt", canary.encode())})
        ann.batch(file_id, metadata={"k": canary})
        ann.http.post("/v1/batches", json={"input_file_id": canary, canary: canary})
        ann.http.get(f"/v1/files?after={canary}&{canary}={canary}")
        ann.http.get("/v1/files", headers={"Authorization": f"Bearer {canary}", "User-Agent": canary})
    records = [str(vars(record)) for record in caplog.records if record.name.startswith("gridline")]
    assert len(records) >= 6
    assert not [record for record in records if canary in record or ann.token in record]
    assert any(ann.account_id in record for record in records)
