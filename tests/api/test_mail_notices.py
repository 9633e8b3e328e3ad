"""Mails about ended batches over HTTP: for the signed-in user's own address, and only after its code came back."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, select

from gridline import limits
from gridline.customers.tables import User
from gridline.db.work import unit_of_work
from gridline.notices import mail
from gridline.notices.tables import MailChoice
from gridline.storage.objects import Store
from tests.api.conftest import Customer
from tests.api.people import Person, signed_up

NOTICES = "/gridline/v1/mail_notices"


@pytest.fixture
def eve(address: str, database: Engine, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    """A user of a platform that sends mail."""
    monkeypatch.setattr(mail, "reaches_users", lambda _config: True)
    with signed_up(address, "eve") as one:
        yield one


def code_of(person: Person) -> str:
    """The code that is on its way to somebody."""
    with unit_of_work() as work:
        found = work.session.scalars(
            select(MailChoice.code)
            .join(User, User.id == MailChoice.user_id)
            .where(User.email == person.email)
        )
        return str(found.one())


def test_it_is_off_until_the_code_comes_back_and_after_it_is_stopped(eve: Person) -> None:
    """Off, unconfirmed, on, off: each call answers with the state; no answer holds the code."""
    assert eve.http.get(NOTICES).json() == {
        "object": "gridline.mail_notices",
        "email": eve.email,
        "state": "off",
    }
    asked = eve.http.post(NOTICES)
    code = code_of(eve)
    assert asked.json()["state"] == "unconfirmed"
    assert code not in asked.text
    assert eve.http.post(f"{NOTICES}/confirm", json={"code": f" {code} "}).json()["state"] == "on"
    assert eve.http.get(NOTICES).json()["state"] == "on"
    assert eve.http.delete(NOTICES).json()["state"] == "off"
    assert eve.http.delete(NOTICES).json()["state"] == "off"


def test_wrong_codes_are_counted(eve: Person) -> None:
    """A wrong code is a 400 that leaves it unconfirmed; after five the right one is refused too, with what to do."""
    eve.http.post(NOTICES)
    code = code_of(eve)
    for _ in range(limits.MAIL_CODE_TRIES_MAX):
        answer = eve.http.post(f"{NOTICES}/confirm", json={"code": "x"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_code")
    answer = eve.http.post(f"{NOTICES}/confirm", json={"code": code})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "code_expired")
    assert "POST /gridline/v1/mail_notices" in answer.json()["error"]["message"]
    assert eve.http.get(NOTICES).json()["state"] == "unconfirmed"


def test_codes_are_few_an_hour(eve: Person) -> None:
    """Nobody fills an address with codes: the sixth in an hour is a 429."""
    answers = [eve.http.post(NOTICES).status_code for _ in range(limits.MAIL_CODES_PER_HOUR_MAX + 1)]
    assert answers == [200] * limits.MAIL_CODES_PER_HOUR_MAX + [429]


def test_a_platform_without_mail_says_so(address: str, database: Engine, store: Store) -> None:
    """There it is a 409 that names another way, and nothing is kept."""
    with signed_up(address, "sam") as sam:
        answer = sam.http.post(NOTICES)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "mail_not_set_up")
        assert "webhook" in answer.json()["error"]["message"]
        assert sam.http.get(NOTICES).json()["state"] == "off"


def test_a_token_cannot_turn_it_on(ann: Customer) -> None:
    """It is for the person behind the address, so it takes a session."""
    assert ann.http.post(NOTICES).status_code == 403
