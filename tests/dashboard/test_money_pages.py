"""Billing and usage as an account sees them, run against the fake API."""

from datetime import UTC, datetime

import pytest
from streamlit.testing.v1 import AppTest  # noqa: TID253 - the dashboard is Streamlit's room, and so are its tests

from dashboard import figures
from tests.dashboard import scripted
from tests.dashboard.conftest import Visits, text_of, texts
from tests.dashboard.fake_api import FakeAPI

pytestmark = pytest.mark.programs


@pytest.fixture(autouse=True)
def january(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages think that it is the 5th of January 2026."""
    monkeypatch.setattr(figures, "now", lambda: datetime(2026, 1, 5, 12, tzinfo=UTC))


def numbers(page: AppTest) -> dict[str, str]:
    """The page's figures by their names."""
    return {one.label: one.value for one in page.metric}


def asked(api: FakeAPI, path: str) -> list[str]:
    """Tokens of the calls to a path."""
    return [token for _, called, token in api.seen if called == path]


def test_the_statement_adds_up(visits: Visits) -> None:
    """Before, charged, added and after come from the entries, to the last digit, and each entry is a row."""
    page = visits.of(scripted.ALICE).run("billing")
    assert numbers(page) == {
        "Credits before": "0.00",
        "Charged": "0.0005936",
        "Added": "99.00",
        "Credits after": "98.9994064",
    }
    table = page.dataframe[0].value
    assert list(table["What"]) == ["Correction", "Batch charged", "Held for a batch", "Credits added"]
    assert list(table["Available"]) == ["-1.00", "+0.0009064", "-0.0015", "+100.00"]
    assert list(table["Held"]) == ["", "-0.0015", "+0.0015", ""]
    assert table["Batch"][1] == f"/batch?id={'batch_fDone'.ljust(30, '0')}"


def test_a_reason_is_text(visits: Visits) -> None:
    """What an entry says is shown as it is, in a table that runs nothing."""
    page = visits.of(scripted.ALICE).run("billing")
    assert scripted.HOSTILE in page.dataframe[0].value["Why"][0]
    assert all("<script>" not in text for kind, text in texts(page) if kind == "html")


@pytest.mark.parametrize("screen", ["billing", "usage"])
def test_a_month_of_nothing_says_so(visits: Visits, screen: str) -> None:
    """An account without entries or usage sees a sentence and zeros, not an empty table."""
    page = visits.of(scripted.NEWCOMER).run(screen)
    assert "January 2026" in text_of(page)
    assert not page.dataframe


@pytest.mark.parametrize("screen", ["billing", "usage"])
def test_the_month_is_in_the_address(visits: Visits, screen: str) -> None:
    """A shared link opens the month that it names, and the last twelve are offered."""
    page = visits.of(scripted.ALICE).run(screen, month="2025-11")
    assert page.selectbox[0].value == "2025-11"
    assert len(page.selectbox[0].options) == 12
    if screen == "billing":
        assert "/download/statement/2025-11" in text_of(page)


def test_usage_is_summed_by_model(visits: Visits) -> None:
    """What was charged, delivered and counted is summed over the days, exactly, the dearest model first."""
    page = visits.of(scripted.ALICE).run("usage")
    assert numbers(page) == {
        "Charged credits": "0.0013156",
        "Delivered lines": "600",
        "Tokens in": "38,520",
        "Tokens out": "8,420",
    }
    table = page.dataframe[0].value
    assert list(table["Model"]) == [scripted.CHAT, "all-minilm-l6-v2"]
    assert list(table["Charged (credits)"]) == ["0.0011872", "0.0001284"]


@pytest.mark.parametrize("screen", ["billing", "usage"])
def test_each_account_reads_its_own(visits: Visits, api: FakeAPI, screen: str) -> None:
    """Two browsers at once: each asks with its own token, and sees only its own."""
    alice, bob = visits.of(scripted.ALICE), visits.of(scripted.BOB)
    for _ in range(2):
        alice.run(screen)
        shown = text_of(bob.run(screen))
        assert "Alice" not in shown
    path = {"billing": "/gridline/v1/statement", "usage": "/gridline/v1/usage"}[screen]
    assert asked(api, path) == [scripted.ALICE, scripted.BOB] * 2


@pytest.mark.parametrize("screen", ["billing", "usage"])
def test_an_api_that_is_away_is_no_traceback(visits: Visits, api: FakeAPI, screen: str) -> None:
    """The API's sentence, the request's id and a way to try again."""
    visit = visits.of(scripted.ALICE)
    api.broken = 503
    shown = text_of(visit.run(screen))
    assert "The database is away for now." in shown
    assert "Request id: req_fake" in shown
