"""Entries, statement and usage over HTTP."""

import csv
import io

import pytest

from gridline.db.work import unit_of_work
from gridline.ledger import correcting
from tests.api.conftest import CREDIT, Customer

TODAY = "2026-01-05"


@pytest.fixture
def moved(ann: Customer) -> Customer:
    """A customer whose credit was granted and corrected twice."""
    with unit_of_work() as work:
        correcting.adjust(work, ann.account_id, 2 * CREDIT, actor="operator:zed", why="=cmd", key="a")
        correcting.adjust(work, ann.account_id, -CREDIT, actor="operator:zed", why="a mistake", key="b")
    return ann


def test_entries_come_newest_first_in_pages(moved: Customer) -> None:
    """Pages as of every list; the operator's own name stays the platform's."""
    first = moved.http.get("/gridline/v1/entries?limit=2").json()
    assert [one["amount"] for one in first["data"]] == ["-1.000000000", "2.000000000"]
    assert first["has_more"]
    rest = moved.http.get(f"/gridline/v1/entries?after={first['last_id']}").json()
    assert [(one["kind"], one["amount"]) for one in rest["data"]] == [("grant", "10.000000000")]
    assert not rest["has_more"]
    past = moved.http.get(f"/gridline/v1/entries?after={rest['last_id']}").json()
    assert (past["data"], past["has_more"], past["last_id"]) == ([], False, None)
    assert "zed" not in str(first)


def test_a_statement_is_an_object_or_a_sheet(moved: Customer) -> None:
    """Both say the same; the sheet has a name for saving and is kept by nobody."""
    shown = moved.http.get("/gridline/v1/statement").json()
    assert shown["from"].endswith("-01")
    assert shown["closing"]["available"] == "11.000000000"
    assert [one["kind"] for one in shown["data"]] == ["grant", "adjust", "adjust"]
    query = f"from={shown['from']}&to={shown['to']}"
    sheet = moved.http.get(f"/gridline/v1/statement?{query}&format=csv")
    assert sheet.headers["content-type"] == "text/csv; charset=utf-8"
    name = f"gridline-statement-{shown['from']}-{shown['to']}.csv"
    assert sheet.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert sheet.headers["cache-control"] == "private, no-store"
    assert int(sheet.headers["content-length"]) == len(sheet.content)
    rows = list(csv.DictReader(io.StringIO(sheet.text, newline="")))
    assert [row["id"] for row in rows[1:-1]] == [one["id"] for one in shown["data"]]
    assert rows[-1]["available"] == "11.000000000"
    assert rows[2]["why"] == "'=cmd"
    assert moved.http.head(f"/gridline/v1/statement?{query}&format=csv").status_code == 200


def test_usage_of_an_account_that_used_nothing_is_empty(moved: Customer) -> None:
    """A list like others, without rows."""
    assert moved.http.get("/gridline/v1/usage").json() == {"object": "list", "data": [], "has_more": False}


@pytest.mark.parametrize("path", ["statement", "usage"])
@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("from=2026-1-05", "from"),
        ("from=2026-02-30", "from"),
        ("to=today", "to"),
        ("to=9999-12-31", "to"),
        ("from=0001-01-01", "from"),
        ("from=2026-01-06&to=2026-01-05", "from"),
        ("from=2025-01-01&to=2026-01-02", "from"),
        ("from=2026-01-05&from=2026-01-05", "from"),
    ],
)
def test_days_that_are_none_are_refused(moved: Customer, path: str, query: str, param: str) -> None:
    """No date, the wrong way round, or more than a year: 400 that names the parameter and the limit."""
    answer = moved.http.get(f"/gridline/v1/{path}?{query}")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_value", param)


def test_a_leap_years_days_fit(moved: Customer) -> None:
    """366 days, both included, are answered; a single day too."""
    assert moved.http.get("/gridline/v1/usage?from=2024-01-01&to=2024-12-31").status_code == 200
    assert moved.http.get(f"/gridline/v1/statement?from={TODAY}&to={TODAY}").status_code == 200


def test_another_format_is_refused(moved: Customer) -> None:
    """The formats that there are are named."""
    answer = moved.http.get("/gridline/v1/statement?format=xlsx")
    assert answer.status_code == 400
    assert "'csv'" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["entries?cursor=x", "statement?until=2026-01-05", "usage?form=csv"])
def test_a_parameter_that_is_not_known_is_refused(moved: Customer, path: str) -> None:
    """A misspelt one is named with those that there are, instead of an answer to another question."""
    answer = moved.http.get(f"/gridline/v1/{path}")
    error = answer.json()["error"]
    name = path.partition("?")[2].partition("=")[0]
    assert (answer.status_code, error["code"], error["param"]) == (400, "unknown_parameter", name)
