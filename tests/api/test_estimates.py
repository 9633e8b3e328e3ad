"""Estimates over HTTP: the hold's own number before there is a batch."""

import logging
from threading import BoundedSemaphore
from typing import Any

import pytest

from api import estimates
from gridline import limits
from gridline.batches import validating
from gridline.batches.tables import Batch
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.usage import likely
from tests.api.conftest import LINES, MODEL, Customer, line

CHAT = "/v1/chat/completions"


pytestmark = pytest.mark.usefixtures("prepared")


def estimate(customer: Customer, file_id: str, **more: Any) -> Any:
    """The answer to an estimate."""
    wanted = {"input_file_id": file_id, "endpoint": CHAT, "completion_window": "24h", **more}
    return customer.http.post("/gridline/v1/estimates", json=wanted)


def test_the_ceiling_is_what_is_held(ann: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate's ceiling is the very number that validation gives hold_credits; nothing is made of it."""
    # Other tests' batches share the database: here none has a history.
    monkeypatch.setattr(likely, "share", lambda *_: likely.DEFAULT)
    file_id = ann.file()
    shown = estimate(ann, file_id).json()
    assert (shown["object"], shown["lines"], shown["model"], shown["exact"]) == (
        "gridline.estimate", 2, MODEL, True,
    )  # fmt: skip
    # Two prompts of six tokens at 10, twice eight tokens at 20.
    assert (shown["input_tokens"], shown["output_tokens_max"]) == (12, 16)
    assert (shown["ceiling"], shown["likely"]) == ("0.000000440", "0.000000280")
    assert shown["likely_basis"] == "default"
    assert (shown["available"], shown["covered"], shown["within_daily_limit"]) == ("10.000000000", True, True)
    assert shown["daily_credits"]["limit"] == "100.000000000"
    assert ann.http.get("/v1/batches").json()["data"] == []
    made = ann.batch(file_id)
    validating.validate(str(made["id"]))
    with unit_of_work() as work:
        assert work.session.get_one(Batch, str(made["id"])).ceiling_nanos == 440


def test_bad_lines_are_named_and_nothing_is_promised(ann: Customer) -> None:
    """A file that would fail says why, and has no price."""
    file_id = ann.file(LINES + line("a") + b"{}\n")
    shown = estimate(ann, file_id).json()
    assert shown["errors"]["total"] == 2
    assert [(one["line"], one["code"]) for one in shown["errors"]["data"]] == [
        (3, "duplicate_custom_id"),
        (4, "missing_required_parameter"),
    ]
    assert {shown[key] for key in ("ceiling", "likely", "covered", "input_tokens", "within_daily_limit")} == {
        None
    }
    assert (shown["lines"], shown["exact"]) == (4, False)


def test_an_estimate_says_whether_credit_and_day_cover_it(ann: Customer) -> None:
    """With less than the ceiling on either side it says so, and still answers."""
    file_id = ann.file()
    with unit_of_work() as work:
        work.session.get_one(Account, ann.account_id).daily_credits_nanos_max = 439
    shown = estimate(ann, file_id).json()
    assert (shown["covered"], shown["within_daily_limit"]) == (True, False)
    with unit_of_work() as work:
        work.session.get_one(Account, ann.account_id).daily_credits_nanos_max = 440
    assert estimate(ann, file_id).json()["within_daily_limit"] is True


@pytest.mark.parametrize(
    ("more", "status", "code", "param"),
    [
        ({"input_file_id": "file-" + "0" * 24}, 404, "not_found", "input_file_id"),
        ({"endpoint": "/v1/responses"}, 400, "invalid_value", "endpoint"),
        ({"completion_window": "1h"}, 400, "invalid_value", "completion_window"),
        ({"completion_window": None}, 400, "missing_required_parameter", "completion_window"),
        ({"metadata": {}}, 400, "unknown_parameter", "metadata"),
        ({"input_file_id": 5}, 400, "invalid_type", "input_file_id"),
    ],
)
def test_what_cannot_be_estimated_is_refused(
    ann: Customer, more: dict[str, Any], status: int, code: str, param: str
) -> None:
    """A body is read as strictly as a create's."""
    answer = estimate(ann, ann.file(), **more)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)


def test_anothers_file_is_like_none(ann: Customer, bob: Customer) -> None:
    """A foreign file gets the very answer of a missing one."""
    foreign, none = (ann.file(), "file-" + "0" * 24)
    answers = [estimate(bob, one) for one in (foreign, none)]
    assert [one.status_code for one in answers] == [404, 404]
    assert answers[0].text.replace(foreign, none) == answers[1].text


def test_estimates_have_a_rate(ann: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading whole files is dear: past so many a minute it is a 429 that says so."""
    monkeypatch.setattr(limits, "ESTIMATES_PER_MINUTE_MAX", 1)
    file_id = ann.file()
    assert estimate(ann, file_id).status_code == 200
    refused = estimate(ann, file_id)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (429, "rate_limit_exceeded")
    assert error["limit"]["name"] == "estimates_per_minute"


def test_estimates_take_turns(ann: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    """While as many wait as may, another is a 503 that SDKs try again; then there is room again."""
    monkeypatch.setattr(estimates, "_PLACES", BoundedSemaphore(1))
    file_id = ann.file()
    with estimates._turn():
        busy = estimate(ann, file_id)
    assert (busy.status_code, busy.json()["error"]["code"]) == (503, "service_unavailable")
    assert "retry-after" in busy.headers
    assert [estimate(ann, file_id).status_code for _ in range(2)] == [200, 200]


def test_nothing_of_the_file_is_logged(ann: Customer, caplog: pytest.LogCaptureFixture) -> None:
    """Good lines, bad lines and refused prompts: no word of them in any record."""
    canary = "Zq7canary"
    with caplog.at_level(logging.DEBUG, logger="gridline"):
        for data in (
            LINES.replace(b"Say ok", canary.encode()),
            LINES.replace(b'"max_tokens"', f'"{canary}"'.encode()),
            LINES.replace(b"Say ok", canary.encode() * 40_000),
        ):
            assert estimate(ann, ann.file(data)).status_code == 200
    assert not [one for one in caplog.records if canary in str(vars(one))]
