import subprocess
import sys

import pytest
from flask import Flask
from sqlalchemy import func, select

from gridline.batches.tables import BatchEvent
from gridline.capacity import operator_hold
from gridline.customers.tables import Account, Audit
from gridline.db.work import unit_of_work
from gridline.errors import Unavailable
from gridline.files.tables import File
from gridline.ledger.tables import Transaction
from gridline.settings import ROOT
from tests.gridline.capacity.yard import Yard
from tests.plugins.pages_app import SIGN_IN, SignIn

HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>&{{ 7*7 }}"
ANSWERS = {"viewer": 403, "stranger": 403, "": 302}


def addresses(pages: Flask, method: str, yard: Yard) -> list[str]:
    """Every address of ours that takes this method, for an account and a batch that are there."""
    account = yard.account("acme")
    batch = yard.batch(account)
    rules = [one for one in pages.url_map.iter_rules() if one.rule.startswith("/gridline")]
    found = [one.rule for one in rules if method in (one.methods or ())]
    return [one.replace("<account_id>", account).replace("<batch_id>", batch) for one in found]


def written() -> tuple[int | None, ...]:
    """How many rows an action could have added to."""
    with unit_of_work() as work:
        counts = [
            work.session.scalar(select(func.count()).select_from(one))
            for one in (Audit, Transaction, BatchEvent)
        ]
        return tuple(counts)


@pytest.mark.parametrize("who", ["viewer", "stranger", ""])
def test_nobody_acts_without_the_right_to(pages: Flask, yard: Yard, signed_in: SignIn, who: str) -> None:
    """Each action, sent with a good CSRF token, is refused to viewers, strangers and anonymous ones; nothing happens."""
    every = addresses(pages, "POST", yard)
    assert len(every) == 8
    browser = signed_in(who)
    token = browser.csrf_token()
    before = written()
    typed = {"csrf_token": token, "amount": "1", "why": "x", "note": "x", "key": "k", "asked": "0"}
    answers = {one: browser.client.post(one, data=typed) for one in every}
    assert {one.status_code for one in answers.values()} == {ANSWERS[who]}
    assert written() == before


@pytest.mark.parametrize(("who", "status"), [("operator", 200), ("admin", 200), *ANSWERS.items()])
def test_pages_are_for_those_who_may_look(
    pages: Flask, yard: Yard, signed_in: SignIn, who: str, status: int
) -> None:
    """Operators, viewers and admins see every page; others read which right they lack, or are sent to sign in."""
    every = addresses(pages, "GET", yard)
    assert len(every) == 6
    wanted = 200 if who == "viewer" else status
    answers = [signed_in(who).client.get(one) for one in every]
    assert {one.status_code for one in answers} == {wanted}
    if who == "stranger":
        assert all("does not have &#39;can read&#39;" in one.text for one in answers)
        assert not any("acme" in one.text for one in answers)
    if not who:
        assert {one.headers["Location"] for one in answers} == {SIGN_IN}


def test_an_action_without_its_token_is_refused(pages: Flask, yard: Yard, signed_in: SignIn) -> None:
    """Another site cannot send a form in the operator's name: no CSRF token, or a wrong one, is a 400 before all else."""
    every = addresses(pages, "POST", yard)
    browser = signed_in("operator")
    before = written()
    for token in ({}, {"csrf_token": "x"}):
        typed = token | {"amount": "1", "why": "x", "note": "x", "key": "k"}
        assert {browser.client.post(one, data=typed).status_code for one in every} == {400}
    assert {browser.client.get(one).status_code for one in every} <= {404, 405}
    assert written() == before


def test_what_customers_wrote_is_only_text(yard: Yard, signed_in: SignIn) -> None:
    """A hostile name, note, reason, file name or search is shown as it was typed, on every page, and runs nothing."""
    account = yard.account("acme")
    batch = yard.batch(account)
    with unit_of_work() as work:
        work.session.get_one(Account, account).name = HOSTILE
        work.session.get_one(File, yard.row(batch).input_file_id).filename = HOSTILE
        operator_hold.hold(work, batch, note=HOSTILE, actor=f"operator:{HOSTILE}")
    operator = signed_in("operator")
    pages = [
        operator.get(address)
        for address in (
            f"/gridline/batches/{batch}", "/gridline/batches", "/gridline/audit", "/gridline/",
            f"/gridline/accounts?search={HOSTILE}", f"/gridline/batches?reason={HOSTILE}&account_id={HOSTILE}",
            f"/gridline/accounts/{account}",
        )
    ]  # fmt: skip
    pages.append(
        operator.post(f"/gridline/accounts/{account}/grant", status=400, amount=HOSTILE, why=HOSTILE)
    )
    for html in pages:
        assert "<script" not in html
        assert "<img" not in html
        assert "49" not in html.replace("149", "")
    assert "&lt;script&gt;" in pages[0]
    assert "{{ 7*7 }}" in pages[-1]


def test_a_page_says_that_the_database_is_away(signed_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage is a sentence and a 503, no traceback."""
    from gridline_airflow.pages import views

    def away() -> None:
        raise Unavailable("The database is away or busy. Try again in a moment.")

    viewer = signed_in("viewer")
    monkeypatch.setattr(views, "reading", away)
    assert "The database is away or busy." in viewer.get("/gridline/", status=503)


def test_no_prompt_and_no_result_is_read(yard: Yard, signed_in: SignIn) -> None:
    """What validation said of a customer's lines, and what they wrote as metadata, stays off the operator's pages."""
    batch = yard.batch(yard.account("acme"))
    yard.change(
        batch,
        errors=[{"line": 1, "message": "secret words"}],
        errors_total=1,
        batch_metadata={"a": "secret words"},
    )
    assert "secret words" not in signed_in("admin").get(f"/gridline/batches/{batch}")


PROCESSES = ("scheduler", "triggerer", "dag-processor", "tasks", "api-server")


@pytest.mark.parametrize("process", PROCESSES)
def test_pages_are_loaded_in_the_web_server_only(process: str) -> None:
    """Airflow's other processes get no view from the door's modules, and import no web framework through them."""
    code = (
        "import sys; sys.argv = ['airflow', sys.argv[1]]\n"
        "from gridline_airflow import web\n"
        "found = web.views(), web.ways()\n"
        "print(len(found[0]), [one for one in ('flask', 'flask_appbuilder', 'sqlalchemy') if one in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, process],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}, capture_output=True, check=True, text=True,
    )  # fmt: skip
    wanted = "4 ['flask', 'flask_appbuilder', 'sqlalchemy']" if process == "api-server" else "0 []"
    assert done.stdout.strip() == wanted


def test_ways_lead_to_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's menu has an entry, a run has a tab with its batch; both under the path that Airflow is served at."""
    from gridline_airflow import web

    from gridline.settings import Settings

    monkeypatch.setattr(web, "settings", lambda: Settings(airflow_url="https://batch.example.org/airflow/"))
    menu, tab = web.ways()
    assert (menu["destination"], menu["href"]) == ("nav", "/airflow/pluginsv2/gridline/")
    assert tab["destination"] == "dag_run"
    assert tab["href"] == "/airflow/pluginsv2/gridline/batches/{RUN_ID}?inside=run"
