"""Rates: what an account may send, upload and download in a short time, and how slow guessing a token is."""

import logging

import httpx
import openai
import pytest
from sqlalchemy import text

from api import rates
from api import windows as windows_module
from api.windows import Windows
from gridline import limits
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.storage.objects import Store
from gridline.telemetry import metrics
from tests.api.conftest import LINES, Customer

LIMIT, LEFT, RESET = (f"x-ratelimit-{name}-requests" for name in ("limit", "remaining", "reset"))
WRONG = {"Authorization": "Bearer gl_live_" + "a" * 38}


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 6_000_000.0

    def monotonic(self) -> float:
        """Now."""
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The windows' clock, at the beginning of a minute and of an hour."""
    clock = Clock()
    monkeypatch.setattr(windows_module, "time", clock)
    return clock


def allow(customer: Customer, per_minute: int) -> None:
    """Set an account's requests a minute, before its token is used."""
    with unit_of_work() as work:
        work.session.get_one(Account, customer.account_id).requests_per_minute_max = per_minute


def test_every_answer_to_a_known_token_says_what_is_left(ann: Customer, clock: Clock) -> None:
    """Limit, remaining and reset on answers and refusals alike; nothing of it without a token."""
    answers = [
        ann.http.get("/v1/files"),
        ann.http.get("/v1/files/x"),
        ann.http.post("/v1/batches", json={}),
        ann.http.head("/v1/files"),
    ]
    assert [answer.status_code for answer in answers] == [200, 404, 400, 200]
    assert {answer.headers[LIMIT] for answer in answers} == {"600"}
    assert [int(answer.headers[LEFT]) for answer in answers] == [599, 598, 597, 596]
    assert answers[0].headers[RESET] == "1m0s"
    clock.seconds += 59.5
    assert ann.http.get("/v1/files").headers[RESET] == "49s"
    for answer in (ann.http.get("/healthz"), ann.http.get("/v1/files", headers=WRONG)):
        assert not {LIMIT, LEFT, RESET} & set(answer.headers)


def test_a_request_too_many_is_refused_until_the_window_slides(
    ann: Customer, bob: Customer, clock: Clock
) -> None:
    """429 with limit, use and a Retry-After that SDKs honour; another account goes on; after the wait so does this one."""
    allow(ann, 3)
    assert [ann.http.get("/v1/files").status_code for _ in range(3)] == [200] * 3
    clock.seconds += 20
    refused = ann.http.get("/v1/files")
    error = refused.json()["error"]
    assert (refused.status_code, error["type"], error["code"]) == (
        429,
        "rate_limit_error",
        "rate_limit_exceeded",
    )
    assert error["limit"] == {"name": "requests_per_minute", "limit": 3, "current": 3, "unit": "requests"}
    assert "3 of 3 requests of your account in a minute. Try again in 41s." in error["message"]
    assert refused.headers["retry-after"] == "41"
    assert "x-should-retry" not in refused.headers
    assert (refused.headers[LIMIT], refused.headers[LEFT]) == ("3", "0")
    with pytest.raises(openai.RateLimitError):
        ann.sdk.models.list()
    assert bob.http.get("/v1/files").status_code == 200
    clock.seconds += 41
    assert ann.http.get("/v1/files").status_code == 200


def test_what_needs_no_token_is_never_limited(ann: Customer) -> None:
    """Health, readiness and metrics answer whatever the account used."""
    allow(ann, 1)
    for path in ("/healthz", "/readyz", "/metrics"):
        assert [ann.http.get(path).status_code for _ in range(5)] == [200] * 5, path
    assert ann.http.get("/v1/files").status_code == 200
    assert ann.http.get("/v1/files").status_code == 429


def test_a_scope_that_is_missing_is_counted_too(ann: Customer) -> None:
    """A token without the scope cannot be used to ask without end."""
    with unit_of_work() as work:
        work.session.execute(
            text("UPDATE tokens SET scopes = '[\"read\"]' WHERE account_id = :id"), {"id": ann.account_id}
        )
    allow(ann, 2)
    assert [ann.http.delete("/v1/files/x").status_code for _ in range(3)] == [403, 403, 429]


def test_two_batches_polled_every_second_always_fit(clock: Clock) -> None:
    """Ten minutes of one poll a second for each of two open batches, and a page now and then, meet no limit."""
    windows = Windows("memory://")
    item = rates._item(rates.REQUESTS, limits.REQUESTS_PER_MINUTE_DEFAULT)
    for second in range(600):
        clock.seconds += 1
        for _ in range(3 if second % 10 == 0 else 2):
            assert windows.take(item, "acct")


def test_guessing_is_slow_and_a_good_token_is_always_let_in(
    ann: Customer, address: str, clock: Clock
) -> None:
    """60 wrong tokens a minute from an address are 401, more are 429; a good one passes all the while."""
    with httpx.Client(base_url=address, verify=False) as http:
        answers = [http.get("/v1/files", headers=WRONG) for _ in range(62)]
        assert [one.status_code for one in answers] == [401] * 60 + [429] * 2
        error = answers[-1].json()["error"]
        assert error["limit"]["name"] == "wrong_tokens_per_minute"
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
        assert "www-authenticate" not in answers[-1].headers
        assert http.get("/v1/files").status_code == 401
        assert ann.http.get("/v1/files").status_code == 200
        clock.seconds += int(answers[-1].headers["retry-after"]) + 0.01
        assert http.get("/v1/files", headers=WRONG).status_code == 401


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:0:0:1", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        (None, "unknown"),
        ("unix", "unknown"),
    ],
)
def test_an_address_is_what_one_guesser_has(address: str | None, network: str) -> None:
    """IPv4 counts by address, IPv6 by the /64 that every line gets whole."""
    assert rates._network(address) == network


def test_an_upload_beyond_the_hours_bytes_is_refused_before_it_is_read(
    ann: Customer, store: Store, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """By its announced length, with limit and use; SDKs are told not to send it again, for it would take an hour."""
    monkeypatch.setattr(limits, "UPLOADED_BYTES_PER_HOUR_MAX", 2 * len(LINES) + 400)
    ann.file()
    refused = ann.http.post(
        "/v1/files", data={"purpose": "batch"}, files={"file": ("r.jsonl", LINES + b"\n" * len(LINES))}
    )
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (429, "rate_limit_exceeded")
    assert error["limit"] == {
        "name": "uploaded_bytes_per_hour", "limit": 2 * len(LINES) + 400, "current": len(LINES), "unit": "bytes",
    }  # fmt: skip
    assert (refused.headers["retry-after"], refused.headers["x-should-retry"]) == ("60", "false")
    assert len(store.list("files/")) == 1
    assert ann.file()
    clock.seconds += 2 * 3600
    assert ann.file()


def test_what_an_upload_brought_counts_also_when_it_is_refused(
    ann: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that were taken are used up whether or not a file came of them, and never more than there are."""
    monkeypatch.setattr(limits, "UPLOADED_BYTES_PER_HOUR_MAX", 10_000)
    with pytest.raises(openai.BadRequestError):
        ann.sdk.files.create(file=("r.jsonl", LINES), purpose="evals")
    use = rates.windows().look(*rates._uploads(ann.account_id))
    assert use is not None
    assert use.limit - use.remaining in (0, len(LINES))
    rates.count_upload(ann.account_id, 9_900)
    rates.count_upload(ann.account_id, 9_900)
    use = rates.windows().look(*rates._uploads(ann.account_id))
    assert use is not None
    assert use.remaining == 0
    with pytest.raises(openai.RateLimitError):
        ann.file()


def test_downloads_are_counted_by_what_is_sent(ann: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole file, a range by its length, nothing for HEAD; beyond the hour's bytes a 429."""
    monkeypatch.setattr(limits, "DOWNLOADED_BYTES_PER_HOUR_MAX", len(LINES) + 10)
    path = f"/v1/files/{ann.file()}/content"
    assert [ann.http.head(path).status_code for _ in range(3)] == [200] * 3
    assert ann.http.get(path, headers={"Range": "bytes=0-9"}).status_code == 206
    assert ann.http.get(path).content == LINES
    refused = ann.http.get(path)
    assert (refused.status_code, refused.json()["error"]["limit"]["name"]) == (
        429,
        "downloaded_bytes_per_hour",
    )
    assert refused.headers["x-should-retry"] == "false"


def test_a_storage_that_fails_stops_nobody_and_is_seen(
    ann: Customer, windows: Windows, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every request passes uncounted; a figure and a line say so, and the storage is left alone for a moment."""
    asked = []

    class Broken:
        def acquire_sliding_window_entry(self, *_: object) -> bool:
            asked.append(1)
            raise ConnectionError("redis://user:hidden@host is away")

        get_sliding_window = acquire_sliding_window_entry

    allow(ann, 1)
    before = metrics.REGISTRY.get_sample_value("gridline_rate_errors_total") or 0
    monkeypatch.setattr(windows, "_storage", Broken())
    with caplog.at_level(logging.WARNING, logger="gridline.api"):
        answers = [ann.http.get("/v1/files") for _ in range(3)]
        answers += [ann.http.get("/v1/files", headers=WRONG)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 401]
    assert LIMIT not in answers[0].headers
    assert ann.file()
    after = metrics.REGISTRY.get_sample_value("gridline_rate_errors_total") or 0
    assert after - before >= 7
    assert len(asked) < 7
    assert "their storage failed (ConnectionError)" in caplog.text
    assert "hidden" not in caplog.text
