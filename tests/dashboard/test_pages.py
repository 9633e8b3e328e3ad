"""The pages as an account sees them, run against the fake API."""

# ruff: noqa: TID253 - the dashboard is Streamlit's room, and so are its tests

import html
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
import streamlit

from dashboard import figures, overview, sessions, words
from dashboard.entrance import PROBLEM
from gridline.client import Account, Batch
from gridline.settings import settings
from tests.dashboard import scripted
from tests.dashboard.conftest import Visits, text_of, texts
from tests.dashboard.fake_api import FakeAPI

pytestmark = pytest.mark.programs

ALICES = scripted.accounts()[scripted.ALICE].batches


def batch_id(name: str) -> str:
    """The id of a scripted batch."""
    return f"batch_{name}".ljust(30, "0")


@pytest.mark.parametrize("screen", ["", "batches", "batch", "account"])
def test_nothing_is_read_or_shown_before_signing_in(visits: Visits, api: FakeAPI, screen: str) -> None:
    """Without a session every address shows the sign-in form and no call is made."""
    page = visits.of(None).run(screen, id=batch_id("fDone"))
    assert 'action="/session/in"' in text_of(page)
    assert "Support tickets" not in text_of(page)
    assert api.seen == []


def test_the_form_brings_back_to_the_address_that_was_asked_for(visits: Visits) -> None:
    """A deep link survives signing in, and what it holds cannot break out of the form."""
    page = visits.of(None).run("batch", id='"><script>x</script>', **{PROBLEM: "invalid_api_key"})
    shown = text_of(page)
    assert 'name="next" value="/batch?id=%22%3E%3Cscript%3Ex%3C%2Fscript%3E"' in shown
    assert "not known here" in shown


def test_the_list_shows_balance_status_progress_reason_and_cost(visits: Visits) -> None:
    """The list answers what is running, why it waits and what it cost, with units."""
    page = visits.of(scripted.ALICE).run("batches")
    numbers = {one.label: one.value for one in page.metric}
    assert numbers == {
        "Available credits": "87.4129604",
        "Held credits": "0.018512",
        "Open batches": "6 of 8",
    }
    shown = text_of(page)
    for expected in (
        "Support tickets, week 1", "802 of 1,319 · 6 failed", "All GPUs that serve this model are busy",
        "Cost (credits)", "0.0005936", "Alice Analytics", "again every 5 seconds",
    ):  # fmt: skip
        assert expected in shown, expected
    for status in ("Validating", "In progress", "Finalizing", "Completed", "Failed", "Expired", "Cancelling"):
        assert f"</span> {status}</span>" in shown, status
    links = [one for one in page.main if one.type == "page_link"]
    assert len(links) == len(ALICES)


def test_filters_come_from_the_address(visits: Visits) -> None:
    """A shared link opens the list as it was filtered."""
    page = visits.of(scripted.ALICE).run("batches", status="Failed", search="nogpu")
    shown = text_of(page)
    assert batch_id("iNoGpu") in shown
    assert batch_id("hBad") not in shown
    assert batch_id("fDone") not in shown


def test_the_list_of_an_account_without_batches_leads_to_the_first(visits: Visits) -> None:
    """The first empty state: where it says how to send one, and where one is sent from the browser."""
    page = visits.of(scripted.NEWCOMER).run("batches")
    assert "No batches yet" in text_of(page)
    links = [one.proto.page for one in page.main if one.type == "page_link"]
    assert links == ["", "new_batch"]


def test_a_new_account_is_shown_how_to_send_a_batch(visits: Visits) -> None:
    """The overview's first steps: which are done, and a snippet that can be run as it is, but for the token."""
    page = visits.of(scripted.NEWCOMER).run()
    shown = text_of(page)
    assert "1. Make an API token (done)" in shown
    assert "3. Send a batch</strong>" in shown
    assert "Nothing runs or waits at the moment." in shown
    code = page.code[0].value
    compile(code, "snippet", "exec")
    assert scripted.CHAT in code
    assert "timeout=60" in code
    assert scripted.NEWCOMER not in text_of(page)


def test_filters_that_match_nothing_can_be_cleared(visits: Visits) -> None:
    """The second empty state says what was searched and brings everything back in one click."""
    page = visits.of(scripted.ALICE).run("batches", search="no such thing")
    assert "Searched all 12 batches" in text_of(page)
    page.button[0].click().run()
    assert batch_id("fDone") in text_of(page)


def test_the_overview_shows_credit_what_runs_and_what_went_wrong(visits: Visits) -> None:
    """The first page: the month's charges beside the balance, open batches with their reasons, and the last failures."""
    page = visits.of(scripted.ALICE).run()
    numbers = {one.label: one.value for one in page.metric}
    assert numbers | {"Available credits": "87.4129604", "Held credits": "0.018512"} == numbers
    assert float(numbers["Spent this month"]) > 0
    shown = text_of(page)
    assert "Your first batch" not in shown
    assert "All GPUs that serve this model are busy" in shown
    assert "lines failed: the batch" in shown
    links = [one.proto.query_string for one in page.main if one.type == "page_link"]
    assert f"id={batch_id('dHalf')}" in links
    assert f"id={batch_id('fDone')}" not in links


@pytest.mark.parametrize(
    ("token", "credit", "batches", "done"),
    [(False, 0, 0, "000"), (True, 0, 0, "100"), (True, 5, 0, "110"), (True, 0, 1, "111")],
)
def test_the_first_steps_are_ticked_as_they_are_done(
    token: bool, credit: int, batches: int, done: str
) -> None:
    """A token, credit, a batch; who has a held batch had credit, whatever is left of it."""
    account = Account("acct", "", credit, 0, {})
    held = Batch.from_json(ALICES[batch_id("dHalf")])
    found = overview.steps(account, [held] * batches, has_token=token)
    assert "".join(str(int(one.done)) for one in found) == done


def test_an_api_that_cannot_answer_is_no_traceback(visits: Visits, api: FakeAPI) -> None:
    """The third empty state: the API's sentence, the request id, and a way to try again that works."""
    visit = visits.of(scripted.ALICE)
    api.broken = 503
    page = visit.run("batches")
    assert "The database is away for now." in text_of(page)
    assert "Request id: req_fake" in text_of(page)
    api.broken = None
    page.button[0].click().run()
    assert batch_id("fDone") in text_of(page)


def test_every_status_has_its_page(visits: Visits) -> None:
    """Whatever state a batch is in, its page shows the id, the status, the timeline and the operator's link."""
    visit = visits.of(scripted.ALICE)
    for wanted, batch in ALICES.items():
        page = visit.run("batch", id=wanted)
        shown = text_of(page)
        assert page.code[0].value == wanted
        assert f"</span> {words.status(batch['status']).text}</span>" in shown
        assert f"/dags/batch/runs/{wanted}" in shown
        assert "by tok_4f2kQ9" in shown


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cBusy", ["Waiting for a GPU", "All GPUs that serve this model", "Wait: more credit", "Waiting since"]),
        ("bCredit", ["Waiting for credit", "Look at your balance", "Credits are held once the file is checked"]),
        ("dHalf", ["802 done", "6 failed", "511 left", "0.015 credits", "The most this batch can cost"]),
        ("fDone", ["0.0015 credits", "0.0005936 credits", "0.0009064 credits", "12,840 tokens at 0.02 credits per million",
                   "= 0.0002568 credits", "/output", "Kept until"]),
        ("gMixed", ["7 lines failed and cost nothing", "/output", "/errors"]),
        ("hBad", ["nothing ran, nothing was charged", "3 problems", "invalid_json_line", "17"]),
        ("iNoGpu", ["No GPU capacity became free", "Charged", "0.00 credits"]),
        ("jLate", ["1,412 lines had finished", "0.0412 credits"]),
        ("kStop", ["142 lines had finished", "1,855 cancelled"]),
    ],
)  # fmt: skip
def test_a_batch_explains_itself(visits: Visits, name: str, expected: list[str]) -> None:
    """Why it waits, how far it is, held then charged then returned, what failed and where the files are."""
    shown = text_of(visits.of(scripted.ALICE).run("batch", id=batch_id(name)))
    for text in expected:
        assert text in shown, text


@pytest.mark.parametrize(
    ("screen", "name"), [("", ""), ("batches", ""), ("batch", "hBad"), ("batch", "iNoGpu")]
)
def test_a_customers_text_is_never_markup(visits: Visits, screen: str, name: str) -> None:
    """File names, descriptions and messages appear as written: escaped in HTML, never in Markdown."""
    page = visits.of(scripted.ALICE).run(screen, id=batch_id(name))
    told = texts(page)
    assert html.escape("<script>alert(1)</script>") in "".join(text for kind, text in told if kind == "html")
    for kind, text in told:
        if kind == "html":
            assert "<script>" not in text
        elif kind != "dataframe":
            assert "evil.example" not in text, kind


@pytest.mark.parametrize(
    "wanted", ["batch_zBob".ljust(30, "0"), "batch_none", "../../gridline/v1/account", "![x](y)"]
)
def test_foreign_and_missing_batches_look_the_same(visits: Visits, wanted: str) -> None:
    """Another account's batch id answers exactly as one that does not exist."""
    page = visits.of(scripted.ALICE).run("batch", id=wanted)
    assert "There is no such batch" in text_of(page)
    assert "Bob" not in text_of(page)


def test_two_accounts_never_see_each_others_rows(visits: Visits) -> None:
    """Two browsers in one server, interleaved: each page holds its own account's batches and credit only."""
    alice, bob = visits.of(scripted.ALICE), visits.of(scripted.BOB)
    for screen in ["batches", "account", "overview", "batch", "batches"] * 2:
        hers, his = text_of(alice.run(screen, id="")), text_of(bob.run(screen, id=""))
        assert "Bob" not in hers
        assert "Alice" not in his
        assert "87.4129604" not in his
        if screen == "batches":
            assert "Support tickets" in hers
            assert "secret batch" in his
            assert "Support tickets" not in his


def test_a_session_that_ended_shows_nothing_more(visits: Visits) -> None:
    """Signing out elsewhere ends this page at its next run, before it reads anything."""
    visit = visits.of(scripted.ALICE)
    visit.run()
    sessions.SESSIONS.end(visit.cookie)
    shown = text_of(visit.run())
    assert "Support tickets" not in shown
    assert 'action="/session/in"' in shown


def test_a_revoked_token_ends_the_session(visits: Visits, api: FakeAPI) -> None:
    """When the API refuses the token, the page asks to sign in and says why."""
    visit = visits.of(scripted.ALICE)
    visit.run()
    del api.accounts[scripted.ALICE]
    shown = text_of(visit.run())
    assert "token is no longer accepted" in shown
    assert 'action="/session/in"' in shown
    assert sessions.SESSIONS.find(visit.cookie) is None


@pytest.mark.parametrize(("name", "ticks"), [("dHalf", True), ("fDone", False)])
def test_only_what_is_active_is_followed(
    visits: Visits, monkeypatch: pytest.MonkeyPatch, name: str, ticks: bool
) -> None:
    """A page asks again every 5 seconds while its batch is open, and never once it has ended."""
    asked: list[str | None] = []
    fragment = streamlit.fragment

    def watched(func: Callable[[], None], *, run_every: str | None) -> Callable[[], None]:
        asked.append(run_every)
        return fragment(func, run_every=run_every)

    monkeypatch.setattr(streamlit, "fragment", watched)
    visits.of(scripted.ALICE).run("batch", id=batch_id(name))
    assert asked == ["5s" if ticks else None]


def test_times_are_relative_and_exact(visits: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time reads as how long ago it was; pointing at it shows the second, in UTC."""
    monkeypatch.setattr(figures, "now", lambda: datetime.fromtimestamp(scripted.NOW, UTC))
    shown = text_of(visits.of(scripted.ALICE).run("batch", id=batch_id("dHalf")))
    assert 'title="2026-01-05 11:45:00 UTC">15 min ago</time>' in shown


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("aNew", "No line has run, so nothing is charged."),
        ("cBusy", "No line is done yet, so nothing is charged for now."),
        ("dHalf", "The 802 lines done so far are delivered and charged."),
        ("eFinal", None),
        ("fDone", None),
        ("lGoing", None),
    ],
)
def test_cancelling_says_what_it_costs_first(
    visits: Visits, api: FakeAPI, name: str, said: str | None
) -> None:
    """What can be cancelled says before what is charged and what returns; a click then cancels it, once."""
    visit = visits.of(scripted.ALICE)
    page = visit.run("batch", id=batch_id(name))
    shown = text_of(page)
    assert ("Cancel it now" in shown) == (said is not None)
    if said is None:
        return
    assert said in shown
    page.button(key="cancel").click().run()
    assert [one for one in api.seen if one[0] == "POST"] == [
        ("POST", f"/openai/v1/batches/{batch_id(name)}/cancel", scripted.ALICE)
    ]
    assert "Cancelling" in text_of(page)
    assert "Cancel it now" not in text_of(page)


def test_failed_lines_are_grouped_with_what_mends_them(visits: Visits) -> None:
    """By code, the largest group first, each with its fix, its lines as plain text, and a file to try them again."""
    page = visits.of(scripted.ALICE).run("batch", id=batch_id("gMixed"))
    groups = [one.label for one in page.expander if "line" in one.label]
    assert groups == ["context_length_exceeded: 4 lines", "batch_expired: 3 lines"]
    shown = text_of(page)
    assert words.fix("context_length_exceeded") in shown
    assert f"/download/{batch_id('gMixed')}/retry" in shown
    assert scripted.HOSTILE in page.dataframe[0].value["Message"][0]
    assert all("<script>" not in text for kind, text in texts(page) if kind == "html")


def test_what_is_done_so_far_is_offered_while_it_runs(visits: Visits) -> None:
    """A running batch with finished lines offers them; one without, and one that has ended, do not."""
    offered = {}
    for name in ("dHalf", "cBusy", "fDone"):
        page = visits.of(scripted.ALICE).run("batch", id=batch_id(name))
        offered[name] = f"/download/{batch_id(name)}/partial" in text_of(page)
    assert offered == {"dHalf": True, "cBusy": False, "fDone": False}


def test_snippets_name_the_public_address(
    visits: Visits, api: FakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the pages reach the API by an address of their own, customers are shown the one that is theirs."""
    monkeypatch.setenv("GRIDLINE_API_INTERNAL_URL", api.url)
    monkeypatch.setenv("GRIDLINE_API_URL", "https://batch.example.org")
    settings.cache_clear()
    shown = text_of(visits.of(scripted.ALICE).run("account"))
    assert "https://batch.example.org/openai/v1" in shown
    assert api.url not in shown
