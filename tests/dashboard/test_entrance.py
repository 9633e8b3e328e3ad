"""Signing up and in with e-mail and password through our own routes: sessions, cookies, and whose form it is."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard import entrance, sessions, words
from dashboard.routes import ROUTES
from gridline.settings import settings
from tests.dashboard.conftest import Visits, text_of
from tests.dashboard.fake_api import FakeAPI

HOME = "http://dashboard.test"
ANN, PASSWORD = "ann@example.com", "correct horse battery"


@pytest.fixture
def browser(api: FakeAPI) -> Iterator[TestClient]:
    """A browser on the dashboard's own origin."""
    with TestClient(
        Starlette(routes=ROUTES), base_url=HOME, headers={"origin": HOME}, follow_redirects=False
    ) as client:
        yield client


def sign_up(browser: TestClient, email: str = ANN, **fields: str) -> str:
    """Post the form; where it leads."""
    form = {"email": email, "password": PASSWORD, "again": PASSWORD, "next": "/"} | fields
    answer = browser.post("/session/up", data=form)
    assert answer.status_code == 303
    return answer.headers["location"]


def test_signing_up_signs_in_and_goes_on(browser: TestClient, api: FakeAPI) -> None:
    """The cookie is opaque and out of scripts' reach; password and secret are in no header and no address."""
    answer = browser.post(
        "/session/up", data={"email": ANN, "password": PASSWORD, "again": PASSWORD, "next": "/batch?id=a"}
    )
    assert answer.headers["location"] == "/batch?id=a"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    session = sessions.SESSIONS.find(browser.cookies[sessions.COOKIE])
    assert session is not None
    assert session.email == ANN
    told = str(answer.headers)
    assert not [secret for secret in (PASSWORD, ANN, "gl_session") if secret in told]


def test_over_https_the_cookie_is_secure(browser: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the dashboard's public address is https, no browser sends the cookie without it."""
    chosen = replace(settings(), dashboard_url="https://pages.example")
    monkeypatch.setattr(entrance, "settings", lambda: chosen)
    answer = browser.post(
        "/session/up",
        data={"email": ANN, "password": PASSWORD, "again": PASSWORD},
        headers={"origin": "https://pages.example"},
    )
    assert "Secure" in answer.headers["set-cookie"]


def test_signing_in_with_a_password(browser: TestClient, api: FakeAPI) -> None:
    """The right password opens the user's session; a wrong one opens none, and says neither who exists nor what was typed."""
    api.users[ANN] = PASSWORD
    for email, password in ((ANN, "wrong"), ("bob@example.com", PASSWORD)):
        answer = browser.post("/session/in", data={"email": email, "password": password, "next": "/usage"})
        assert answer.headers["location"] == "/usage?sign_in=invalid_credentials"
        assert sessions.COOKIE not in browser.cookies
    answer = browser.post("/session/in", data={"email": ANN, "password": PASSWORD, "next": "//evil.example"})
    assert answer.headers["location"] == "/"
    assert sessions.SESSIONS.find(browser.cookies[sessions.COOKIE]) is not None


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"again": "something else"}, "passwords_differ"),
        ({"password": "other than before", "again": "other than before"}, "email_taken"),
    ],
)
def test_a_sign_up_that_fails_keeps_the_way_on(
    browser: TestClient, api: FakeAPI, fields: dict[str, str], problem: str
) -> None:
    """The page comes again with what was wrong and still knows where the visitor wanted to go; nobody is signed in."""
    api.users[ANN] = PASSWORD
    assert (
        sign_up(browser, next="/batch?id=a", **fields) == f"/sign_up?next=%2Fbatch%3Fid%3Da&sign_in={problem}"
    )
    assert sessions.COOKIE not in browser.cookies
    assert words.problem(problem) != words.SIGN_IN_OTHER


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
def test_forms_of_other_sites_sign_nobody_up(browser: TestClient, api: FakeAPI, origin: str) -> None:
    """Another site's page can neither make a user nor sign a visitor in as somebody else."""
    for path in ("/session/up", "/session/in"):
        answer = browser.post(
            path, data={"email": ANN, "password": PASSWORD, "again": PASSWORD}, headers={"origin": origin}
        )
        assert answer.status_code == 403
    assert (api.users, api.seen) == ({}, [])


def test_signing_out_ends_the_session_at_the_api_too(browser: TestClient, api: FakeAPI) -> None:
    """After signing out neither the cookie nor the API's session opens anything."""
    sign_up(browser)
    copied = browser.cookies[sessions.COOKIE]
    assert [secret for secret in api.accounts if secret.startswith("gl_session")]
    browser.post("/session/out")
    assert sessions.SESSIONS.find(copied) is None
    assert [secret for secret in api.accounts if secret.startswith("gl_session")] == []


def test_signing_out_works_while_the_api_is_away(browser: TestClient, api: FakeAPI) -> None:
    """The browser is signed out whatever the API says."""
    sign_up(browser)
    copied = browser.cookies[sessions.COOKIE]
    api.broken = 503
    assert browser.post("/session/out").status_code == 303
    assert sessions.SESSIONS.find(copied) is None


def test_the_api_hears_where_the_visitor_is(
    browser: TestClient, api: FakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tries are counted by the visitor's address, which only a trusted proxy may name for another."""
    api.users[ANN] = PASSWORD
    said = {"x-forwarded-for": "198.51.100.1, 203.0.113.7"}
    browser.post("/session/in", data={"email": ANN, "password": PASSWORD}, headers=said)
    chosen = replace(settings(), trusted_proxy="testclient")
    monkeypatch.setattr(entrance, "settings", lambda: chosen)
    browser.post("/session/in", data={"email": ANN, "password": PASSWORD}, headers=said)
    assert api.addresses == ["testclient", "203.0.113.7"]


def test_the_pages_lead_to_each_other(visits: Visits) -> None:
    """Signing in offers to sign up and back, and the page that was asked for is kept on the way."""
    page = visits.of(None).run("batch", id="a")
    shown = text_of(page)
    assert 'name="email"' in shown
    assert 'href="/sign_up?next=%2Fbatch%3Fid%3Da"' in shown
    page = visits.of(None).run("sign_up", next="/batch?id=a", sign_in="email_taken")
    shown = text_of(page)
    assert 'action="/session/up"' in shown
    assert 'name="next" value="/batch?id=a"' in shown
    assert "has signed up before" in shown


def test_signing_up_never_leads_elsewhere(visits: Visits) -> None:
    """An address of another site is no page to go on to."""
    shown = text_of(visits.of(None).run("sign_up", next="//evil.example"))
    assert "evil" not in shown
    assert 'name="next" value="/"' in shown


def test_a_closed_platform_offers_no_form(visits: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sign-up is switched off no page leads there, and the page itself says whom to ask."""
    monkeypatch.setenv("GRIDLINE_SIGN_UP", "closed")
    settings.cache_clear()
    assert "/sign_up" not in text_of(visits.of(None).run("batch", id="a"))
    shown = text_of(visits.of(None).run("sign_up"))
    assert "Ask the operator" in shown
    assert 'action="/session/up"' not in shown
