"""Signing in with an identity provider through the live API: who gets in, as whom, and every token that does not."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any

import httpx
import pytest
from flask import Flask
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, RSAKey
from sqlalchemy import Engine, text

from api import identities as views
from api import sessions as session_views
from api.app import create_app
from api.auth import scope_of
from gridline import limits
from gridline.customers import identities, passwords, users
from gridline.db.work import unit_of_work
from gridline.errors import SettingInvalid
from gridline.ledger import reading
from gridline.settings import Settings, SignUp, read_settings
from tests.api import described
from tests.api.conftest import live
from tests.api.forged import FORGED, changed
from tests.api.people import PASSWORD, credentials, fresh_email
from tests.identity_provider import CLIENT_ID, IdentityProvider, identity_provider, rsa

USERS, SESSIONS, SESSION = "/gridline/v1/users", "/gridline/v1/sessions", "/gridline/v1/session"
IDENTITY = "/gridline/v1/sessions/identity"


@dataclass
class Platform:
    """A live platform that believes a provider; ``seconds`` is what its cache takes for now."""

    provider: IdentityProvider
    http: httpx.Client
    app: Flask
    seconds: float = 1_000.0

    def enter(self, token: str | None = None, nonce: str = "n") -> httpx.Response:
        """Sign in with a token, by default a good one."""
        body = {"id_token": token or self.provider.id_token(nonce), "nonce": nonce}
        return self.http.post(IDENTITY, json=body)


@pytest.fixture(scope="module")
def _running() -> Iterator[IdentityProvider]:
    with identity_provider() as one:
        yield one


@pytest.fixture
def provider(_running: IdentityProvider) -> IdentityProvider:
    """The provider, where somebody new has signed in."""
    fresh = IdentityProvider(url=_running.url)
    vars(_running).update(vars(fresh))
    _running.person |= {"sub": token_hex(8), "email": fresh_email("ann")}
    return _running


def believing(provider: IdentityProvider) -> Settings:
    """The settings of a platform that believes it."""
    return replace(read_settings({}), oidc_issuer=provider.url, oidc_client_id=CLIENT_ID)


@pytest.fixture
def platform(provider: IdentityProvider, database: Engine) -> Iterator[Platform]:
    """A platform that has heard nothing of the provider yet."""
    app = create_app(config=believing(provider))
    held = described.Described(app)

    def check(answer: httpx.Response) -> None:
        answer.read()
        assert held.problems(answer.request.method, str(answer.request.url), answer) == []

    with (
        live(app) as url,
        httpx.Client(base_url=url, timeout=20, verify=False, event_hooks={"response": [check]}) as http,
    ):
        one = Platform(provider, http, app)
        app.config[views.TRUSTED].provider.monotonic = lambda: one.seconds
        yield one


def code(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    return answer.status_code, answer.json()["error"]["code"]


def rows(sql: str, **values: object) -> list[tuple[Any, ...]]:
    """What the database holds."""
    with unit_of_work() as work:
        return [tuple(row) for row in work.session.execute(text(sql), values)]


def test_somebody_new_gets_an_account_and_comes_back_to_it(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first sign-in opens user, account and welcome credit as a sign-up does; the next ones open the same account."""
    welcome = replace(read_settings({}), sign_up_credits="5")
    monkeypatch.setattr(session_views, "settings", lambda: welcome)
    first, second = platform.enter(), platform.enter()
    assert (first.status_code, second.status_code) == (200, 200)
    shown = first.json()
    assert shown["user"]["email"] == shown["account"]["name"] == platform.provider.person["email"]
    assert second.json()["account"] == shown["account"]
    assert second.json()["secret"] != shown["secret"]
    here = platform.http.get(SESSION, headers={"Authorization": f"Bearer {shown['secret']}"})
    assert here.json()["account"] == shown["account"]
    with unit_of_work() as work:
        assert reading.balance(work, shown["account"]["id"]).available_nanos == 5 * 10**9
    said = rows("SELECT action, actor FROM audit WHERE account_id = :id", id=shown["account"]["id"])
    actor = f"user:{shown['user']['id']}"
    assert said.count(("session.started", actor)) == 2
    assert {("user.signed_up", actor), ("identity.added", actor), ("account.opened", actor)} < set(said)


def test_the_subject_is_who_somebody_is(platform: Platform) -> None:
    """With another e-mail the same subject keeps the account; another subject does not get it by the e-mail."""
    before = dict(platform.provider.person)
    account = platform.enter().json()["account"]
    platform.provider.person["email"] = fresh_email("married")
    assert platform.enter().json()["account"] == account
    platform.provider.person |= before | {"sub": token_hex(8)}
    refused = platform.enter()
    assert code(refused) == (409, "email_taken")
    assert "operator" in refused.json()["error"]["message"]


def test_an_elliptic_key_is_as_good(platform: Platform) -> None:
    """ES256 is the other algorithm that is believed, also where the provider has one key without an id."""
    key = ECKey.generate_key("P-256")
    platform.provider.keys = [key]
    assert platform.enter().status_code == 200


@pytest.mark.parametrize("name", FORGED)
def test_a_token_that_is_not_right_opens_nothing(platform: Platform, name: str) -> None:
    """Whatever is wrong with it, it is a 401 that says what helps, repeats nothing of it, and makes nobody."""
    token = FORGED[name](platform.provider)
    refused = platform.enter(token)
    assert code(refused) == (401, "invalid_id_token"), refused.text
    assert refused.headers["x-should-retry"] == "false"
    assert [one for one in token.split(".") if len(one) > 9 and one in refused.text] == []
    email = platform.provider.person["email"]
    assert rows("SELECT 1 FROM users WHERE email = :email", email=email) == []


@pytest.mark.parametrize("said", [False, None, "true", 1])
def test_an_e_mail_must_be_verified(platform: Platform, said: object) -> None:
    """The provider has to say that the e-mail is the user's, with the very word true, also when the user is known."""
    for known in (False, True):
        refused = platform.enter(platform.provider.id_token(email_verified=said))
        assert code(refused) == (403, "email_not_verified"), known
        assert platform.enter().status_code == 200


def test_keys_may_change(platform: Platform) -> None:
    """A new key is fetched when it is first met, but what nobody published makes us ask once a minute only."""
    assert platform.enter().status_code == 200
    platform.provider.keys = [rsa("second")]
    assert code(platform.enter()) == (401, "invalid_id_token")
    platform.seconds += 61
    assert platform.enter().status_code == 200
    asked = platform.provider.asked.count("/keys")
    for _ in range(5):
        assert code(platform.enter(platform.provider.id_token(key=rsa("first")))) == (401, "invalid_id_token")
    assert platform.provider.asked.count("/keys") == asked == 2


def test_a_key_that_was_withdrawn_opens_nothing(platform: Platform) -> None:
    """What the provider no longer publishes is forgotten within the hour, also if nobody brings a new key."""
    assert platform.enter().status_code == 200
    platform.provider.keys = [rsa("second")]
    platform.seconds += 3601
    assert code(platform.enter(platform.provider.id_token(key=rsa("first")))) == (401, "invalid_id_token")


def test_a_short_key_is_not_believed(platform: Platform) -> None:
    """A key that can be guessed is none, whoever publishes it."""
    with pytest.warns(SecurityWarning):
        platform.provider.keys = [RSAKey.generate_key(1024, {"kid": "short"})]
    assert code(platform.enter()) == (401, "invalid_id_token")


def test_a_provider_that_is_away_is_no_refusal(platform: Platform) -> None:
    """While it does not answer, signing in is a 503 that says when to try again, and it is asked again after a while."""
    platform.provider.described = {"issuer": "https://another.example"}
    away = platform.enter()
    assert code(away) == (503, "service_unavailable")
    assert away.headers["retry-after"] == "2"
    assert "x-should-retry" not in away.headers
    platform.provider.described = {}
    assert platform.enter().status_code == 503
    platform.seconds += 6
    assert platform.enter().status_code == 200


def test_a_closed_platform_lets_in_whom_it_knows(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sign-up is switched off somebody new is refused and nothing is made; who was there before signs in."""
    known = platform.enter().json()["account"]
    closed = replace(read_settings({}), sign_up=SignUp.CLOSED)
    monkeypatch.setattr(session_views, "settings", lambda: closed)
    assert platform.enter().json()["account"] == known
    email = fresh_email("new")
    refused = platform.enter(platform.provider.id_token(sub=token_hex(8), email=email))
    assert code(refused) == (403, "sign_up_closed")
    assert rows("SELECT 1 FROM users WHERE email = :email", email=email) == []


def test_an_e_mail_with_a_password_is_somebody_elses(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who signed up with an e-mail never showed that it is theirs: the identity neither gets that account nor is got by it."""
    email = platform.provider.person["email"]
    squatter = platform.http.post(USERS, json=credentials(email)).json()
    refused = platform.enter(platform.provider.id_token(email=email.upper()))
    assert code(refused) == (409, "email_taken")
    assert "password" in refused.json()["error"]["message"]
    assert refused.headers["x-should-retry"] == "false"
    assert rows("SELECT 1 FROM identities WHERE user_id = :id", id=squatter["user"]["id"]) == []
    closed = replace(read_settings({}), sign_up=SignUp.CLOSED)
    monkeypatch.setattr(session_views, "settings", lambda: closed)
    assert code(platform.enter()) == (409, "email_taken")


def test_no_password_opens_who_has_none(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signing in and up with the e-mail fail as for somebody else's, after the same work as for nobody's."""
    verified: list[str | None] = []
    matches = passwords.matches

    def noted(password_hash: str | None, password: str) -> bool:
        verified.append(password_hash)
        return matches(password_hash, password)

    assert platform.enter().status_code == 200
    email = platform.provider.person["email"]
    monkeypatch.setattr(passwords, "matches", noted)
    for given in (PASSWORD, ""):
        alike = [
            platform.http.post(SESSIONS, json=credentials(one, given))
            for one in (email, fresh_email("nobody"))
        ]
        assert [code(one) for one in alike] == [(401, "invalid_credentials")] * 2
        assert alike[0].content == alike[1].content
    assert code(platform.http.post(USERS, json=credentials(email))) == (409, "email_taken")
    assert verified == [None] * 5


def test_an_operator_may_give_a_password_beside(platform: Platform) -> None:
    """Who came by the provider and is given a password by the operator gets into the one account either way."""
    account = platform.enter().json()["account"]
    email = platform.provider.person["email"]
    with unit_of_work() as work:
        users.reset(work, email, passwords.hashed(PASSWORD), actor="operator:t")
    assert platform.http.post(SESSIONS, json=credentials(email)).json()["account"] == account
    assert platform.enter().json()["account"] == account


def test_many_at_once_are_one_user(platform: Platform) -> None:
    """Sign-ins of somebody new at the same moment, with e-mails that differ, all open the one account that they make."""
    tokens = [platform.provider.id_token(email=fresh_email("at-once")) for _ in range(4)] * 2
    with ThreadPoolExecutor(len(tokens)) as pool:
        answers = list(pool.map(platform.enter, tokens))
    assert [one.status_code for one in answers] == [200] * len(tokens)
    assert len({one.json()["account"]["id"] for one in answers}) == 1
    sub = platform.provider.person["sub"]
    assert len(rows("SELECT user_id FROM identities WHERE subject = :sub", sub=sub)) == 1
    assert len(rows("SELECT id FROM users WHERE email LIKE 'at-once-%'")) == 1


def test_a_repeated_sign_in_that_overtakes_is_no_other_user(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two looks of the first sign-in the same one, sent again, may have made the user: then that is who signs in."""
    looks, made = 0, []

    def overtaken(look: Callable[..., Any]) -> Callable[..., Any]:
        def looked(*given: Any) -> Any:
            nonlocal looks
            looks += 1
            if looks == 2:
                made.append(platform.enter(token).json()["account"])
            return look(*given)

        return looked

    token = platform.provider.id_token()
    for module in (identities, users):
        monkeypatch.setattr(module, "find", overtaken(module.find))
    answer = platform.enter(token)
    assert (answer.status_code, [answer.json()["account"]]) == (200, made)


def test_tries_are_counted_with_other_sign_ins(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that has had its sign-ins of a minute waits, whatever it brings; nothing is looked at before."""
    monkeypatch.setattr(limits, "SIGN_INS_OF_ADDRESS_PER_MINUTE_MAX", 2)
    platform.http.post(SESSIONS, json=credentials(fresh_email("x")))
    assert code(platform.enter("x")) == (401, "invalid_id_token")
    refused = platform.enter()
    assert code(refused) == (429, "rate_limit_exceeded")
    assert refused.json()["error"]["limit"]["name"] == "sign_ins_of_address_per_minute"


def test_new_accounts_are_counted_with_other_sign_ups(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that knows many people makes nobody many accounts in an hour from one address."""
    monkeypatch.setattr(limits, "SIGN_UPS_OF_ADDRESS_PER_HOUR_MAX", 1)
    assert platform.enter().status_code == 200
    assert platform.enter().status_code == 200
    other = platform.provider.id_token(sub=token_hex(8), email=fresh_email("other"))
    assert code(platform.enter(other)) == (429, "rate_limit_exceeded")


@pytest.mark.parametrize(
    ("body", "code_and_param"),
    [
        ({"nonce": "n"}, ("missing_required_parameter", "id_token")),
        ({"id_token": "x"}, ("missing_required_parameter", "nonce")),
        ({"id_token": "x", "nonce": "n", "email": "a@b.de"}, ("unknown_parameter", "email")),
        ({"id_token": 1, "nonce": "n"}, ("invalid_type", "id_token")),
        ({"id_token": "x" * 16_385, "nonce": "n"}, ("string_above_max_length", "id_token")),
        ({"id_token": "x", "nonce": "n" * 257}, ("string_above_max_length", "nonce")),
    ],
)
def test_a_body_is_read_strictly(
    platform: Platform, body: dict[str, object], code_and_param: tuple[str, str]
) -> None:
    """What is missing, unknown or wrong is named, before the provider is asked for anything."""
    answer = platform.http.post(IDENTITY, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, *code_and_param)
    assert platform.provider.asked == []


def test_where_no_provider_is_believed_there_is_no_such_call(address: str, database: Engine) -> None:
    """The address is unknown, the document has nothing of it, and the platform says that only passwords sign in."""
    with httpx.Client(base_url=address, verify=False) as http:
        unknown = http.post(IDENTITY, json={"id_token": "x", "nonce": "n"})
        assert code(unknown) == (404, "unknown_url")
        assert IDENTITY not in http.get("/openapi.json").json()["paths"]
        said = http.get("/gridline/v1/platform").json()["sign_in"]
    assert said == {"password": True, "identity_provider": False}


def test_where_one_is_believed_the_call_is_described_and_open(platform: Platform) -> None:
    """One address more than elsewhere, in the document too, which asks for no token; the platform says so."""
    more = {one.rule for one in platform.app.url_map.iter_rules()} - {
        one.rule for one in create_app().url_map.iter_rules()
    }
    assert more == {IDENTITY}
    assert scope_of(platform.app, "identities.sign_in", "POST") is None
    assert platform.http.get("/openapi.json").json()["paths"][IDENTITY]["post"]["security"] == []
    said = platform.http.get("/gridline/v1/platform").json()["sign_in"]
    assert said == {"password": True, "identity_provider": True}


def test_a_provider_that_cannot_be_believed_stops_the_start() -> None:
    """A plain address elsewhere is said at the start, not to the first customer."""
    wrong = replace(read_settings({}), oidc_issuer="http://id.example", oidc_client_id=CLIENT_ID)
    with pytest.raises(SettingInvalid, match="GRIDLINE_OIDC_ISSUER"):
        create_app(config=wrong)


def test_no_log_tells_who_or_with_what(platform: Platform, caplog: pytest.LogCaptureFixture) -> None:
    """Signing in well, badly and while the provider is away leaves no token, e-mail, subject or secret in any log."""
    caplog.set_level(logging.DEBUG)
    good, bad = platform.provider.id_token(), changed(platform.provider)
    secret = platform.enter(good).json()["secret"]
    platform.enter(bad)
    platform.provider.described = {"issuer": "https://another.example"}
    platform.seconds += 3601
    assert platform.enter(good).status_code == 503
    told = "\n".join(str(vars(one)) for one in caplog.records)
    assert "answered" in told
    parts = [one for token in (good, bad) for one in token.split(".")[1:]]
    kept = [*parts, secret, platform.provider.person["email"], platform.provider.person["sub"]]
    assert [one for one in kept if one in told] == []
