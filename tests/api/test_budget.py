"""The monthly budget: set by a signed-in owner, met at create and at hold, never moved by a token."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine

from gridline.batches.tables import Batch
from gridline.cli.main import main
from gridline.customers.tables import Account, Audit
from gridline.db.work import unit_of_work
from gridline.storage.objects import Store
from tests.api.conftest import Customer, line
from tests.api.people import Person, signed_up


@pytest.fixture
def eve(address: str, database: Engine, store: Store) -> Iterator[Person]:
    """A user with an account of her own."""
    with signed_up(address, "eve") as one:
        yield one


def set_to(person: Person, limit: Any) -> Any:
    """The answer to setting it."""
    return person.http.post("/gridline/v1/budget", json={"limit": limit})


def test_an_owner_sets_shows_and_removes_it(eve: Person) -> None:
    """The answer, the account and the estimate show it with its use and reset; each change is in the audit, once."""
    assert eve.http.get("/gridline/v1/account").json()["limits"]["monthly_budget"] is None
    done = set_to(eve, "2.50")
    assert done.status_code == 200, done.text
    month = done.json()["monthly_budget"]
    assert (done.json()["object"], month["limit"], month["current"]) == (
        "gridline.budget",
        "2.500000000",
        "0.000000000",
    )
    assert set_to(eve, "2.5").json() == done.json()
    variables = {"OPENAI_BASE_URL": f"{eve.http.base_url}/openai/v1", "OPENAI_API_KEY": eve.token()["secret"]}
    printed = CliRunner().invoke(main, ["balance", "--json"], env=variables)
    assert json.loads(printed.stdout)["monthly_budget"] == {"limit": "2.500000000", "current": "0.000000000"}
    assert eve.http.get("/gridline/v1/account").json()["limits"]["monthly_budget"] == month
    assert eve.http.delete("/gridline/v1/budget").json() == {
        "object": "gridline.budget",
        "monthly_budget": None,
    }
    with unit_of_work() as work:
        told = [
            one.details
            for one in work.session.query(Audit)
            .filter_by(account_id=eve.account_id, action="budget.set")
            .order_by(Audit.sequence)
        ]
    assert told == [{"monthly_budget": "2.500000000"}, {"monthly_budget": None}]


@pytest.mark.parametrize("limit", ["-1", "1e3", "", "0.0000000001", "1000000001", 5, ["1"]])
def test_what_is_no_budget_is_refused(eve: Person, limit: Any) -> None:
    """By the name of the field, and nothing changes."""
    answer = set_to(eve, limit)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "limit"
    assert eve.http.get("/gridline/v1/account").json()["limits"]["monthly_budget"] is None


def test_a_create_beyond_it_is_refused(ann: Customer) -> None:
    """429 with the budget's name, limit, use and reset, and who can change it; no batch is made."""
    file_id = ann.file(line("a"))
    with unit_of_work() as work:
        work.session.get_one(Account, ann.account_id).monthly_budget_nanos = 0
    answer = ann.http.post(
        "/v1/batches",
        json={"input_file_id": file_id, "endpoint": "/v1/chat/completions", "completion_window": "24h"},
    )
    assert answer.status_code == 429
    error = answer.json()["error"]
    assert (error["code"], error["limit"]["name"], error["limit"]["limit"]) == (
        "limit_exceeded",
        "monthly_budget",
        "0.000000000",
    )
    assert "owner raise the budget" in error["message"]
    with unit_of_work() as work:
        assert work.session.query(Batch).filter_by(account_id=ann.account_id).count() == 0


@pytest.mark.usefixtures("prepared")
def test_an_estimate_says_whether_it_fits(ann: Customer) -> None:
    """To the unit: a budget of the ceiling fits, one of a unit less does not."""
    asked = {
        "input_file_id": ann.file(),
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    free = ann.http.post("/gridline/v1/estimates", json=asked).json()
    assert (free["monthly_budget"], free["within_monthly_budget"]) == (None, None)
    ceiling = int(free["ceiling"].replace(".", ""))
    for nanos, fits in ((ceiling, True), (ceiling - 1, False)):
        with unit_of_work() as work:
            work.session.get_one(Account, ann.account_id).monthly_budget_nanos = nanos
        assert ann.http.post("/gridline/v1/estimates", json=asked).json()["within_monthly_budget"] is fits
