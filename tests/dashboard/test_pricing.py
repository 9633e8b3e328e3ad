"""The pricing page, on the live API."""

import pytest

from gridline.settings import settings
from tests.api.conftest import address, database, pepper, qualified, shared_database, windows
from tests.dashboard.conftest import text_of, visit

__all__ = ["address", "database", "pepper", "qualified", "shared_database", "windows"]

pytestmark = pytest.mark.programs


def test_anybody_sees_what_it_costs(address: str, qualified: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without signing in: every listed model's rates, the packs, and the limits of a new account, each with its unit."""
    monkeypatch.setenv("GRIDLINE_API_URL", address)
    settings.cache_clear()
    try:
        page = visit("", monkeypatch).run("pricing")
    finally:
        settings.cache_clear()
    table = page.dataframe[0].value.set_index("Model")
    assert table.loc["smollm2-135m-instruct", "Output"] == "0.02"
    assert table.loc["all-minilm-l6-v2", "Output"] == ""
    shown = text_of(page)
    for expected in ("100.00 credits", "200.0 MB", "600 requests", "Sign in"):
        assert expected in shown, expected


def test_an_api_that_is_away_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says that the API cannot be reached."""
    monkeypatch.setenv("GRIDLINE_API_URL", "http://127.0.0.1:9")
    settings.cache_clear()
    try:
        page = visit("", monkeypatch).run("pricing")
    finally:
        settings.cache_clear()
    assert "cannot be reached" in text_of(page)
