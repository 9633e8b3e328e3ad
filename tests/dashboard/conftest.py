"""The dashboard's bench: the fake API, pages run by AppTest as a signed-in account."""

# ruff: noqa: TID253 - the dashboard is Streamlit's room, and so are its tests

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.testing.v1 import AppTest, app_test

from dashboard import sessions, visitor
from gridline.client import Client
from gridline.settings import settings
from tests.dashboard import fake_api
from tests.dashboard.fake_api import FakeAPI

MAIN = Path(__file__).resolve().parents[2] / "dashboard" / "main.py"


@pytest.fixture(scope="session", autouse=True)
def _apptest_folder() -> Iterator[None]:
    """AppTest leaves its folder to the interpreter's end, where that is a warning and so an error."""
    yield
    app_test.TMP_DIR.cleanup()


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAPI]:
    """The fake API, and settings that point to it; no session is left from another test."""
    with fake_api.running() as fake:
        monkeypatch.setenv("GRIDLINE_API_URL", fake.url)
        settings.cache_clear()
        monkeypatch.setattr(sessions.SESSIONS, "_found", {})
        yield fake
        for session in sessions.SESSIONS._found.values():
            session.client.close()
    settings.cache_clear()


@dataclass
class Visit:
    """One browser: its cookie and its page."""

    cookie: str
    page: AppTest
    monkeypatch: pytest.MonkeyPatch

    def run(self, screen: str = "", **query: str) -> AppTest:
        """Run the page with this browser's cookie, on another screen or query if given."""
        self.monkeypatch.setattr(visitor, "cookie", lambda: self.cookie)
        if query:
            self.page.query_params = dict(query)
        if screen:
            self.page.switch_page(f"screens/{screen}.py")
        self.page.run()
        assert not self.page.exception, [one.value for one in self.page.exception]
        return self.page


def visit(cookie: str, monkeypatch: pytest.MonkeyPatch) -> Visit:
    """A browser with this cookie."""
    page = AppTest.from_file(MAIN, default_timeout=20)
    # Or every test would scan all installed packages for components, which we have none of.
    page._bidi_component_manager = BidiComponentManager()
    return Visit(cookie, page, monkeypatch)


SignIn = Callable[[str, str], Visit]
"""Address of an API and a token to a browser that has signed in there."""


@pytest.fixture
def sign_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[SignIn]:
    """Opens browsers on a live API; no session is left from another test, and none to another."""
    monkeypatch.setattr(sessions.SESSIONS, "_found", {})

    def make(address: str, token: str) -> Visit:
        client = Client(address, token)
        return visit(sessions.SESSIONS.start(client, client.account()), monkeypatch)

    yield make
    for session in sessions.SESSIONS._found.values():
        session.client.close()


class Visits:
    """Makes browsers, signed in with a token or not at all."""

    def __init__(self, api: FakeAPI, monkeypatch: pytest.MonkeyPatch) -> None:
        self.api, self.monkeypatch = api, monkeypatch

    def of(self, token: str | None, email: str = "") -> Visit:
        """A browser that has signed in with the token, or as the user whose session it is; None: that has not."""
        cookie = ""
        if token is not None:
            client = Client(self.api.url, token)
            cookie = sessions.SESSIONS.start(client, client.account(), email=email)
        return visit(cookie, self.monkeypatch)

    def user(self, email: str) -> Visit:
        """A browser of somebody who has just signed up."""
        with Client(self.api.url) as nobody:
            return self.of(nobody.sign_up(email, "correct horse battery").secret, email)


@pytest.fixture
def visits(api: FakeAPI, monkeypatch: pytest.MonkeyPatch) -> Visits:
    """Browsers of the fake API's accounts."""
    return Visits(api, monkeypatch)


def texts(page: AppTest) -> list[tuple[str, str]]:
    """What a page sends to the browser, main part and sidebar: the kind of each element and its text."""
    found = []
    for one in [*page.main, *page.sidebar]:
        if one.type == "dataframe":
            found.append((one.type, one.value.to_string(max_colwidth=None)))
        else:
            found.append((one.type, getattr(one.proto, "body", "") or str(one.proto)))
    return found


def text_of(page: AppTest) -> str:
    """All of a page's texts together."""
    return "\n".join(text for _, text in texts(page))
