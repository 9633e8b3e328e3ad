"""The request log over HTTP, in a dialect that has one."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from api.app import create_app
from gridline import ids
from gridline.batches import finishing, logging_requests
from gridline.batches.tables import Batch
from gridline.cli.main import main
from gridline.clock import FrozenClock
from gridline.db.work import unit_of_work
from gridline.storage.objects import Store
from tests.api.conftest import Customer, live
from tests.dialects import speak
from tests.gridline.batches.bench import Bench

REQUESTS = "/gridline/v1/requests"
ENDED = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def logged(ann: Customer, store: Store, monkeypatch: pytest.MonkeyPatch) -> str:
    """A batch of Ann's with two delivered lines in the log; it ended on a day of its own."""
    speak(monkeypatch, "gridport")
    bench = Bench(FrozenClock(ENDED), store, ann.account_id)
    made, lease = bench.held(lines=(2,)), ids.new("lease")
    bench.claim(made, 0, lease=lease, state="done")
    bench.segment(made, 0, [0, 1], lease=lease)
    assert finishing.finish(made.id, run_over=True) == "completed"
    with unit_of_work() as work:
        work.session.get_one(Batch, made.id).ended_at = ENDED
    assert logging_requests.log_batch(made.id)
    return made.id


@pytest.fixture
def http(logged: str, ann: Customer) -> Iterator[httpx.Client]:
    """Ann at a platform with a log."""
    headers = {"Authorization": f"Bearer {ann.token}"}
    with (
        live(create_app()) as url,
        httpx.Client(base_url=url, headers=headers, verify=False) as client,
    ):
        yield client


def pages(http: httpx.Client, **query: Any) -> list[dict[str, Any]]:
    """Every request of a query, one a page."""
    found: list[dict[str, Any]] = []
    while True:
        after = {"after": found[-1]["id"]} if found else {}
        page = http.get(REQUESTS, params={"limit": 1, **query, **after}).json()
        found += page["data"]
        if not page["has_more"]:
            return found


def test_a_batch_and_a_day_are_walked_page_by_page(http: httpx.Client, logged: str) -> None:
    """Both ways show each line once, in order, with ids, outcome and cost, and nothing of prompt or answer."""
    rows = pages(http, batch_id=logged)
    assert rows == pages(http, day="2026-01-05")
    assert [one["id"] for one in rows] == [f"{logged}-0", f"{logged}-1"]
    first = rows[0]
    assert set(first) == {
        "id", "object", "created_at", "source", "batch_id", "custom_id", "model", "status_code", "code",
        "input_tokens", "output_tokens", "cost",
    }  # fmt: skip
    assert (first["source"], first["status_code"], first["code"]) == ("batch", 200, None)
    assert first["created_at"] == int(ENDED.timestamp())
    assert float(first["cost"]) > 0
    assert pages(http, day="2026-01-04") == []


@pytest.mark.parametrize(
    ("query", "status", "param"),
    [
        ({"day": "yesterday"}, 400, "day"),
        ({"limit": "0"}, 400, "limit"),
        ({"model": "x"}, 400, "model"),
        ({"batch_id": "batch_none"}, 404, "batch_id"),
        ({"after": "x"}, 404, "after"),
        ({"after": "batch_x-99999999999999999999"}, 404, "after"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    http: httpx.Client, query: dict[str, str], status: int, param: str
) -> None:
    """By the name of the parameter."""
    answer = http.get(REQUESTS, params=query)
    assert answer.status_code == status
    assert answer.json()["error"]["param"] == param


def test_a_batch_and_a_day_together_are_refused(http: httpx.Client, logged: str) -> None:
    """One of them says it all; neither is passed over."""
    answer = http.get(REQUESTS, params={"batch_id": logged, "day": "2026-01-05"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "day")


def test_the_log_is_the_accounts_own(http: httpx.Client, logged: str, bob: Customer) -> None:
    """Another account's day is empty, its batch is a 404, and a cursor of it goes nowhere; a stranger gets a 401."""
    http.headers["Authorization"] = f"Bearer {bob.token}"
    assert pages(http, day="2026-01-05") == []
    for query in ({"batch_id": logged}, {"day": "2026-01-05", "after": f"{logged}-0"}):
        assert http.get(REQUESTS, params=query).status_code == 404
    del http.headers["Authorization"]
    assert http.get(REQUESTS).status_code == 401


def test_the_command_shows_the_log(http: httpx.Client, logged: str) -> None:
    """`gridline requests` prints the API's objects, of a batch or a day, and says how to see more."""
    token = http.headers["Authorization"].removeprefix("Bearer ")
    variables = {"OPENAI_BASE_URL": f"{http.base_url}/v1", "OPENAI_API_KEY": token}
    first = CliRunner().invoke(main, ["requests", "--batch", logged, "--limit", "1"], env=variables)
    assert first.exit_code == 0, first.output
    assert [json.loads(one) for one in first.stdout.splitlines()] == pages(http, batch_id=logged)[:1]
    more = f"gridline requests --batch {logged} --after {logged}-0"
    assert more in first.stderr
    rest = CliRunner().invoke(main, more.split()[1:], env=variables)
    day = CliRunner().invoke(main, ["requests", "--day", "2026-01-05"], env=variables)
    assert day.stdout == first.stdout + rest.stdout


def test_the_command_says_where_there_is_no_log(address: str, ann: Customer) -> None:
    """In a dialect without one the answer is a sentence, not an address."""
    variables = {"OPENAI_BASE_URL": f"{address}/openai/v1", "OPENAI_API_KEY": ann.token}
    told = CliRunner().invoke(main, ["requests"], env=variables)
    assert told.exit_code == 1
    assert "keeps no request log" in told.stderr


def test_where_there_is_no_log_there_is_no_such_address(ann: Customer) -> None:
    """The default dialect has none, and says so as of any other unknown address."""
    answer = ann.http.get(REQUESTS)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_url")
