"""Signing up, in and out through the live API, and what nobody may learn or try too often on the way."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from argon2 import PasswordHasher
from sqlalchemy import Engine, text

from api import sessions as views
from api import windows as windows_module
from gridline import limits
from gridline.customers import passwords, users
from gridline.customers import sessions as kept
from gridline.db.work import unit_of_work
from gridline.errors import SettingInvalid
from gridline.settings import SignUp, read_settings
from gridline.storage.objects import Store
from tests.api.conftest import HELD_TO_THE_DOCUMENT, Customer
from tests.api.people import PASSWORD, Person, credentials, fresh_email, signed_up

USERS, SESSIONS, SESSION = "/gridline/v1/users", "/gridline/v1/sessions", "/gridline/v1/session"


@pytest.fixture
def eve(address: str, database: Engine, store: Store) -> Iterator[Person]:
    """Somebody who has signed up."""
    with signed_up(address, "eve") as one:
        yield one


class Still:
    """The windows' clock, which stands at the beginning of an hour."""

    def monotonic(self) -> float:
        """Now."""
        return 6_000_000.0 // 3600 * 3600


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    """No window slides while a test runs."""
    monkeypatch.setattr(windows_module, "time", Still())


@pytest.fixture
def stranger(address: str, database: Engine) -> Iterator[httpx.Client]:
    """A client without any credential."""
    with httpx.Client(base_url=address, timeout=20, verify=False, event_hooks=HELD_TO_THE_DOCUMENT) as http:
        yield http


def code(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    return answer.status_code, answer.json()["error"]["code"]


def test_signing_up_signs_in_to_an_account_of_ones_own(eve: Person) -> None:
    """The session says who and to what; the account is empty, with the limits of a new one and no credit."""
    shown = eve.http.get(SESSION).json()
    assert "secret" not in shown
    assert (shown["user"]["email"], shown["account"]) == (
        eve.email,
        {"id": eve.account_id, "name": eve.email},
    )
    assert shown["expires_at"] - shown["created_at"] == limits.SESSION_SECONDS_MAX
    account = eve.http.get("/gridline/v1/account").json()
    assert (account["id"], account["balance"]["available"]) == (eve.account_id, "0.000000000")
    assert account["limits"]["open_batches"] == {"limit": limits.OPEN_BATCHES_DEFAULT, "current": 0}


def test_signing_in_starts_another_session(eve: Person, stranger: httpx.Client) -> None:
    """The e-mail in any case and the password in any form open the same user; each session is its own."""
    answer = stranger.post(SESSIONS, json=credentials(f" {eve.email.upper()} "))
    assert answer.status_code == 200
    assert answer.json()["account"]["id"] == eve.account_id
    assert answer.json()["secret"] != eve.secret
    assert eve.http.get(SESSION).status_code == 200


def test_signing_up_again_signs_in(eve: Person, stranger: httpx.Client) -> None:
    """A sign-up whose answer was lost can be sent again: it opens the account that it made, and makes no other."""
    again = stranger.post(USERS, json=credentials(eve.email))
    assert (again.status_code, again.json()["account"]["id"]) == (200, eve.account_id)
    taken = stranger.post(USERS, json=credentials(eve.email, "another password"))
    assert code(taken) == (409, "email_taken")
    assert taken.headers["x-should-retry"] == "false"


def test_a_wrong_password_and_an_unknown_e_mail_are_one_answer(
    eve: Person, stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Word for word the same 401, after one verification each: nobody learns who has signed up."""
    verified: list[str | None] = []
    matches = passwords.matches

    def noted(password_hash: str | None, password: str) -> bool:
        verified.append(password_hash)
        return matches(password_hash, password)

    monkeypatch.setattr(passwords, "matches", noted)
    wrong = stranger.post(SESSIONS, json=credentials(eve.email, "wrong wrong wrong"))
    unknown = stranger.post(SESSIONS, json=credentials(fresh_email("nobody")))
    assert code(wrong) == code(unknown) == (401, "invalid_credentials")
    assert wrong.content == unknown.content
    assert sorted(wrong.headers) == sorted(unknown.headers)
    assert verified[0] is not None
    assert verified[1:] == [None]


def test_signing_out_ends_the_session_and_no_other(eve: Person, stranger: httpx.Client) -> None:
    """From the next request on its secret is a 401 everywhere; a session from another sign-in and tokens go on."""
    other = stranger.post(SESSIONS, json=credentials(eve.email)).json()["secret"]
    token = eve.token()["secret"]
    assert eve.http.delete(SESSIONS).json()["deleted"] is True
    for path in (SESSION, "/v1/batches", "/gridline/v1/account"):
        assert code(eve.http.get(path)) == (401, "invalid_api_key")
    assert code(eve.http.delete(SESSIONS)) == (401, "invalid_api_key")
    assert stranger.get(SESSION, headers={"Authorization": f"Bearer {other}"}).status_code == 200
    assert stranger.get("/v1/batches", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_a_session_ended_elsewhere_holds_for_at_most_a_moment(
    eve: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a process remembers of a session is gone within the time that a token is remembered for."""
    assert eve.http.get(SESSION).status_code == 200
    with unit_of_work() as work:
        work.session.execute(text("DELETE FROM sessions WHERE account_id = :id"), {"id": eve.account_id})
    assert eve.http.get("/gridline/v1/account").status_code == 200
    assert code(eve.http.get(SESSION)) == (401, "invalid_api_key")
    monkeypatch.setattr(kept, "_MEMORY", type(kept._MEMORY)())
    assert code(eve.http.get("/gridline/v1/account")) == (401, "invalid_api_key")


def test_a_session_reads_and_acts_as_its_account(eve: Person, ann: Customer) -> None:
    """A session uploads, creates and reads on OpenAI's paths too, as the user, and sees nothing of another account."""
    theirs = str(ann.batch()["id"])
    file = eve.http.post(
        "/v1/files", data={"purpose": "batch"}, files={"file": ("r.jsonl", b'{"custom_id": "a"}\n')}
    )
    assert file.status_code in (200, 400), file.text
    assert eve.http.get("/v1/batches").json()["data"] == []
    assert eve.http.get(f"/v1/batches/{theirs}").status_code == 404
    assert eve.http.post(f"/v1/batches/{theirs}/cancel").status_code == 404


def test_guessing_is_slow_for_an_e_mail_and_for_an_address(
    eve: Person, stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some sign-ins with one e-mail even the right password waits; many e-mails from one address wait too."""
    for _ in range(limits.SIGN_INS_OF_EMAIL_PER_MINUTE_MAX):
        assert code(stranger.post(SESSIONS, json=credentials(eve.email, "wrong"))) == (
            401,
            "invalid_credentials",
        )
    refused = stranger.post(SESSIONS, json=credentials(eve.email.upper()))
    assert code(refused) == (429, "rate_limit_exceeded")
    assert refused.json()["error"]["limit"]["name"] == "sign_ins_of_email_per_minute"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert eve.http.get(SESSION).status_code == 200
    monkeypatch.setattr(limits, "SIGN_INS_OF_ADDRESS_PER_MINUTE_MAX", 1)
    assert stranger.post(SESSIONS, json=credentials(fresh_email("other"))).status_code == 401
    refused = stranger.post(SESSIONS, json=credentials(fresh_email("other")))
    assert refused.json()["error"]["limit"]["name"] == "sign_ins_of_address_per_minute"


def test_signing_up_in_bulk_is_slow(stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounts and knowledge of who has one cannot be had by the thousand from one address."""
    monkeypatch.setattr(limits, "SIGN_UPS_OF_ADDRESS_PER_HOUR_MAX", 2)
    for _ in range(2):
        assert stranger.post(USERS, json=credentials(fresh_email("a"))).status_code == 200
    assert code(stranger.post(USERS, json=credentials(fresh_email("a")))) == (429, "rate_limit_exceeded")


def test_callers_behind_a_trusted_proxy_are_counted_apart(
    stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dashboard and a proxy on this host say for whom they ask; what a client put before that counts for nothing."""
    monkeypatch.setattr(limits, "SIGN_INS_OF_ADDRESS_PER_MINUTE_MAX", 1)
    seen = []
    told = ("203.0.113.1", "203.0.113.2", "198.51.100.9, 203.0.113.1", "2001:db8::1", "2001:db8::2")
    for said in told:
        answer = stranger.post(
            SESSIONS, json=credentials(fresh_email("x")), headers={"X-Forwarded-For": said}
        )
        seen.append(answer.status_code)
    assert seen == [401, 401, 429, 401, 429]


def test_a_platform_may_be_closed(stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sign-up is switched off nobody gets in, and the answer says whom to ask."""
    monkeypatch.setattr(views, "settings", lambda: replace(read_settings({}), sign_up=SignUp.CLOSED))
    refused = stranger.post(USERS, json=credentials(fresh_email("a")))
    assert code(refused) == (403, "sign_up_closed")
    assert "operator" in refused.json()["error"]["message"]


def test_credit_at_sign_up_must_be_an_amount(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that is no amount stops the start, by name; none is the default."""
    assert views.welcome_nanos() == 0
    for wrong in ("five", "-1"):
        monkeypatch.setattr(
            views, "settings", lambda given=wrong: replace(read_settings({}), sign_up_credits=given)
        )
        with pytest.raises(SettingInvalid, match="GRIDLINE_SIGN_UP_CREDITS"):
            views.welcome_nanos()


@pytest.mark.parametrize("path", [USERS, SESSIONS])
@pytest.mark.parametrize(
    ("body", "code_and_param"),
    [
        ({"password": PASSWORD}, ("missing_required_parameter", "email")),
        ({"email": "a@b.de"}, ("missing_required_parameter", "password")),
        (
            {"email": "a@b.de", "password": PASSWORD, "account_id": "acct_x"},
            ("unknown_parameter", "account_id"),
        ),
        ({"email": "a b", "password": PASSWORD}, ("invalid_value", "email")),
        ({"email": "a@b.de", "password": "x" * 257}, ("string_above_max_length", "password")),
        ({"email": ["a@b.de"], "password": PASSWORD}, ("invalid_type", "email")),
    ],
)
def test_a_body_is_read_strictly(
    stranger: httpx.Client, path: str, body: dict[str, object], code_and_param: tuple[str, str]
) -> None:
    """What is missing, unknown or wrong is named; no password is ever repeated."""
    answer = stranger.post(path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, *code_and_param)
    assert str(body.get("password")) not in answer.text


def test_a_short_password_cannot_be_chosen(stranger: httpx.Client) -> None:
    """At sign-up it is refused with the limit; nothing is made."""
    email = fresh_email("short")
    answer = stranger.post(USERS, json=credentials(email, "elevenchars"))
    assert code(answer) == (400, "string_below_min_length")
    assert "12" in answer.json()["error"]["message"]
    with unit_of_work() as work:
        assert users.find(work, email) is None


def test_old_hashes_are_renewed_at_sign_in(eve: Person, stranger: httpx.Client) -> None:
    """A password whose hash has other parameters opens, and is stored with today's."""
    old = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1).hash(PASSWORD)
    with unit_of_work() as work:
        user = users.find(work, eve.email)
        assert user is not None
        users.rehash(work, user.id, old)
    assert stranger.post(SESSIONS, json=credentials(eve.email)).status_code == 200
    with unit_of_work() as work:
        user = users.find(work, eve.email)
        assert user is not None
        assert user.password_hash is not None
        assert not passwords.outdated(user.password_hash)
        assert passwords.matches(user.password_hash, PASSWORD)


def test_no_log_tells_who_or_with_what(
    eve: Person, stranger: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Signing in well and badly, making a token and signing out leave no e-mail, password, secret or token in any log."""
    caplog.set_level(logging.DEBUG)
    secret = stranger.post(SESSIONS, json=credentials(eve.email)).json()["secret"]
    stranger.post(SESSIONS, json=credentials(eve.email, "wrong wrong wrong"))
    stranger.post(USERS, json=credentials(eve.email, "short"))
    token = eve.token()["secret"]
    eve.http.delete(SESSIONS)
    told = "\n".join(
        str(vars(one))
        for one in caplog.records
        if one.name.startswith(("gridline", "waitress", "sqlalchemy"))
    )
    assert "answered" in told
    kept = (eve.email, PASSWORD, "wrong wrong", secret, token, eve.secret)
    assert [one for one in kept if one in told] == []
