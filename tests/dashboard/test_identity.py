"""Signing in with an identity provider through our own routes: who comes back, with what, once, and where they go on to."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard import identity, sessions, words
from dashboard.identity import CALLBACK, COOKIE, START, Begins
from dashboard.routes import ROUTES
from gridline.errors import SettingInvalid
from gridline.settings import settings
from tests.dashboard.conftest import Visits, text_of
from tests.dashboard.fake_api import FakeAPI
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, identity_provider

HOME = "http://dashboard.test"
ANN = "ann@example.com"


@pytest.fixture(scope="module")
def _running() -> Iterator[IdentityProvider]:
    with identity_provider() as one:
        yield one


@pytest.fixture
def provider(_running: IdentityProvider, api: FakeAPI, monkeypatch: pytest.MonkeyPatch) -> IdentityProvider:
    """The provider that dashboard and API believe; nobody is on the way to it."""
    vars(_running).update(vars(IdentityProvider(url=_running.url, redirect_uri=f"{HOME}{CALLBACK}")))
    set_up(monkeypatch, _running.url)
    monkeypatch.setattr(identity, "BEGINS", Begins())
    identity._provider_of.cache_clear()
    return _running


def set_up(monkeypatch: pytest.MonkeyPatch, issuer: str, dashboard: str = HOME) -> None:
    """Settings of a dashboard that believes a provider."""
    told = {"ISSUER": issuer, "CLIENT_ID": CLIENT_ID, "CLIENT_SECRET": CLIENT_SECRET}
    for name, one in told.items():
        monkeypatch.setenv(f"GRIDLINE_OIDC_{name}", one)
    monkeypatch.setenv("GRIDLINE_DASHBOARD_URL", dashboard)
    settings.cache_clear()


@dataclass
class Browser:
    """A browser on the dashboard that goes to the provider where it is sent."""

    http: TestClient

    def start(self, target: str = "/", **more: Any) -> str:
        """Post the form; the address at the provider that the page leads to."""
        answer = self.http.post(START, data={"next": target}, **more)
        assert answer.status_code == 200
        found = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', answer.text)
        assert found
        return unescape(found[1])

    def authorize(self, url: str) -> str:
        """Sign in at the provider; the path that it sends the browser back to."""
        answer = httpx.get(url, verify=False)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"].removeprefix(HOME)

    def sign_in(self, target: str = "/") -> str:
        """There and back again; where it leads in the end."""
        return self.back(self.authorize(self.start(target)))

    def back(self, path: str, **more: Any) -> str:
        """Come back from the provider; where it leads."""
        answer = self.http.get(path, **more)
        assert answer.status_code == 303
        return answer.headers["location"]

    @property
    def signed_in(self) -> bool:
        """Whether its cookie opens a session."""
        return sessions.SESSIONS.find(self.http.cookies.get(sessions.COOKIE) or "") is not None


def make_browser(base: str = HOME) -> TestClient:
    """One on an origin."""
    return TestClient(
        Starlette(routes=ROUTES), base_url=base, headers={"origin": base}, follow_redirects=False
    )


@pytest.fixture
def browser(provider: IdentityProvider) -> Iterator[Browser]:
    """A browser on the dashboard's own origin."""
    with make_browser() as http:
        yield Browser(http)


@pytest.fixture
def other(provider: IdentityProvider) -> Iterator[Browser]:
    """Somebody else's."""
    with make_browser() as http:
        yield Browser(http)


def problem(address: str) -> str:
    """What a page is to explain, for which there are words."""
    (code,) = parse_qs(urlsplit(address).query)["sign_in"]
    assert words.problem(code) != words.SIGN_IN_OTHER
    return code


def test_there_and_back_signs_in_and_goes_on(
    browser: Browser, api: FakeAPI, provider: IdentityProvider
) -> None:
    """The API is given the provider's ID token with the nonce of this sign-in, and the page that was asked for comes next."""
    assert browser.sign_in("/batch?id=a") == "/batch?id=a"
    session = sessions.SESSIONS.find(browser.http.cookies[sessions.COOKIE])
    assert session is not None
    assert session.email == ANN
    (brought,) = api.identities
    assert brought["id_token"] == provider.issued[0]
    assert COOKIE not in browser.http.cookies
    assert api.addresses == ["testclient"]


def test_the_browser_sees_no_secret(browser: Browser, provider: IdentityProvider) -> None:
    """Neither cookie, address nor page has the verifier, the client's secret, a token or the session's secret in it."""
    answer = browser.http.post(START, data={"next": "/"})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/oidc" in cookie
    assert "Max-Age=600" in cookie
    assert answer.headers["cache-control"] == "no-store"
    ((_, begun),) = identity.BEGINS._found.items()
    asked = {name: one for name, (one,) in parse_qs(urlsplit(browser.start()).query).items()}
    assert asked["scope"].split() == ["openid", "email"]
    seen = str(answer.headers) + answer.text
    last = browser.http.get(browser.authorize(browser.start()))
    seen += str(last.headers) + last.text
    hidden = (begun.verifier, CLIENT_SECRET, "gl_session", provider.issued[0])
    assert [one for one in hidden if one in seen + repr(begun)] == []
    assert len({asked["state"], asked["nonce"], begun.state, begun.nonce}) == 4


def test_over_https_the_cookie_is_secure(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the dashboard's public address is https, no browser sends the cookie without it."""
    set_up(monkeypatch, settings().oidc_issuer, "https://pages.example")
    answer = browser.http.post(START, data={"next": "/"}, headers={"origin": "https://pages.example"})
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
def test_forms_of_other_sites_start_nothing(
    browser: Browser, provider: IdentityProvider, origin: str
) -> None:
    """Another site's page cannot send a visitor off to sign in."""
    answer = browser.http.post(START, data={"next": "/"}, headers={"origin": origin})
    assert answer.status_code == 403
    assert browser.http.get(START).status_code == 405
    assert (provider.asked, identity.BEGINS._found) == ([], {})


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x"]
)
def test_it_never_leads_elsewhere(browser: Browser, target: str) -> None:
    """An address of another site is no page to go on to, well signed in or not."""
    assert browser.sign_in(target) == "/"
    browser.start(target)
    assert browser.back(f"{CALLBACK}?state=x").startswith("/?")


def test_a_state_is_good_once_in_the_browser_that_began(
    browser: Browser, other: Browser, api: FakeAPI
) -> None:
    """Missing, foreign, or used before: nobody is signed in, and whoever is on the way still arrives."""
    path = browser.authorize(browser.start())
    code = urlsplit(path).query.partition("&state=")[0]
    # To a browser that began nothing, then to one that began something else.
    assert problem(other.back(path)) == "identity_lost"
    other.start()
    # What an attacker sends a victim: the attacker's own code and state.
    for somebody, sent in (
        (other, path),
        (browser, f"{CALLBACK}?{code}"),
        (browser, f"{CALLBACK}?{code}&state=ä"),
    ):
        assert problem(somebody.back(sent)) == "identity_lost"
        assert not somebody.signed_in
    assert api.identities == []
    kept = browser.http.cookies[COOKIE]
    assert browser.back(path) == "/"
    assert browser.signed_in
    browser.http.cookies.set(COOKIE, kept, path="/oidc")
    assert problem(browser.back(path)) == "identity_lost"
    assert len(api.identities) == 1


def test_a_sign_in_may_take_ten_minutes(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes back later begins again; what was begun is not kept for ever either."""
    now = 0.0
    monkeypatch.setattr(identity, "BEGINS", Begins(lambda: now))
    path = browser.authorize(browser.start())
    now = 601.0
    assert problem(browser.back(path)) == "identity_lost"
    monkeypatch.setattr(identity, "BEGUN_MAX", 2)
    for _ in range(5):
        browser.start()
    assert len(identity.BEGINS._found) == 2


@pytest.mark.parametrize(
    ("refusal", "told"), [("access_denied", "identity_cancelled"), ("server_error", "identity_refused")]
)
def test_what_the_provider_refuses_is_said(
    browser: Browser, api: FakeAPI, provider: IdentityProvider, refusal: str, told: str
) -> None:
    """An error instead of a code is a sentence on the page that was asked for, and ends this sign-in."""
    provider.refusal = refusal
    path = browser.authorize(browser.start("/batch?id=a"))
    assert browser.back(path) == f"/batch?id=a&sign_in={told}"
    assert problem(browser.back(path)) == "identity_lost"
    assert (api.identities, browser.signed_in) == ([], False)


def test_another_issuers_answer_is_not_taken(browser: Browser, api: FakeAPI) -> None:
    """Where the answer says who it is from, it has to be the provider that the visitor was sent to."""
    path = browser.authorize(browser.start())
    assert problem(browser.back(f"{path}&iss=https://evil.example")) == "identity_refused"
    path = browser.authorize(browser.start())
    assert browser.back(f"{path}&iss={settings().oidc_issuer}") == "/"
    assert len(api.identities) == 1


@pytest.mark.parametrize(
    ("status", "body"), [(400, {}), (200, {"id_token": None}), (200, {"id_token": 7}), (302, {})]
)
def test_a_code_that_cannot_be_exchanged_signs_nobody_in(
    browser: Browser, api: FakeAPI, provider: IdentityProvider, status: int, body: dict[str, Any]
) -> None:
    """Whatever the provider gives instead of an ID token, the API is not asked and the page says so."""
    provider.status, provider.answered = status, body
    assert problem(browser.sign_in()) == "identity_refused"
    assert (api.identities, browser.signed_in) == ([], False)


def test_a_code_is_of_no_use_to_anybody_else(browser: Browser, provider: IdentityProvider) -> None:
    """The provider gives a token only for the verifier of the browser that began: a stolen code fails in another one."""
    stolen = parse_qs(urlsplit(browser.authorize(browser.start())).query)["code"][0]
    state = parse_qs(urlsplit(browser.start()).query)["state"][0]
    assert problem(browser.back(f"{CALLBACK}?code={stolen}&state={state}")) == "identity_refused"


def test_a_client_may_prove_itself_in_the_form(
    browser: Browser, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that wants id and secret in the form gets them there, and only there."""
    provider.described = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    sent: list[dict[str, Any]] = []

    def noted(method: str, url: str, **more: Any) -> tuple[int, dict[str, Any]]:
        sent.append(more)
        return 200, {"id_token": provider.id_token()}

    path = browser.authorize(browser.start())
    monkeypatch.setattr(identity, "read_json", noted)
    assert browser.back(path) == "/"
    (more,) = sent
    assert more["data"]["client_secret"] == CLIENT_SECRET
    assert "auth" not in more


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        ((409, "email_taken"), "email_has_user"),
        ((401, "invalid_id_token"), "invalid_id_token"),
        ((403, "email_not_verified"), "email_not_verified"),
        ((403, "sign_up_closed"), "sign_up_closed"),
        ((429, "rate_limit_exceeded"), "rate_limit_exceeded"),
        ((404, "unknown_url"), "identity_not_taken"),
    ],
)
def test_what_the_api_refuses_is_said(
    browser: Browser, api: FakeAPI, refused: tuple[int, str], told: str
) -> None:
    """Each refusal of the API is a sentence on the page that was asked for; nobody is signed in."""
    api.identity_refused = refused
    assert problem(browser.sign_in("/usage")) == told
    assert not browser.signed_in


def test_a_provider_that_is_away_is_said(
    browser: Browser, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever cannot be sent there stays on the page, and can sign in with a password."""
    provider.described = {"issuer": "https://another.example"}
    answer = browser.http.post(START, data={"next": "/usage"})
    assert answer.headers["location"] == "/usage?sign_in=provider_unreachable"
    assert words.problem("provider_unreachable") != words.SIGN_IN_OTHER


def test_signing_in_anew_ends_the_session_before(browser: Browser, api: FakeAPI) -> None:
    """A browser has one session: the API's secret of the one before opens nothing any more."""
    browser.sign_in()
    before = browser.http.cookies[sessions.COOKIE]
    browser.sign_in()
    assert sessions.SESSIONS.find(before) is None
    assert len([secret for secret in api.accounts if secret.startswith("gl_session")]) == 1


def test_the_pages_offer_it_where_there_is_one(provider: IdentityProvider, visits: Visits) -> None:
    """Signing in and up both offer the provider by its host, and keep the page that was asked for."""
    host = urlsplit(provider.url).netloc
    for page in (visits.of(None).run("batch", id="a"), visits.of(None).run("sign_up", next="/batch?id=a")):
        form = text_of(page).partition(f'action="{START}"')[2].partition("</form>")[0]
        assert 'name="next" value="/batch?id=a"' in form
        assert f"Sign in with {host}" in form


def test_without_one_there_is_no_way_there(visits: Visits, api: FakeAPI) -> None:
    """Where none is configured no page offers it and neither route does anything."""
    for screen in ("batch", "sign_up"):
        assert START not in text_of(visits.of(None).run(screen))
    with make_browser() as http:
        assert http.post(START, data={"next": "/"}).status_code == 404
        assert http.get(f"{CALLBACK}?code=a&state=b").status_code == 404


def test_half_a_configuration_stops_the_start(
    provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An issuer without the client's secret is said by name."""
    monkeypatch.setenv("GRIDLINE_OIDC_CLIENT_SECRET", "")
    settings.cache_clear()
    with pytest.raises(SettingInvalid, match="GRIDLINE_OIDC_CLIENT_SECRET"):
        identity.checked_host()
