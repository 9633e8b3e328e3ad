"""Mails about ended batches on the page of the account, on the live API."""

from collections.abc import Iterator

import pytest
from sqlalchemy import select
from streamlit.testing.v1 import AppTest  # noqa: TID253 - the dashboard is Streamlit's room, and so are its tests

from dashboard import sessions
from gridline.client import Client
from gridline.customers.tables import User
from gridline.db.work import unit_of_work
from gridline.notices import mail
from gridline.notices.tables import MailChoice
from tests.api.conftest import Customer, address, ann, database, pepper, shared_database, windows
from tests.api.people import Person, signed_up
from tests.dashboard.conftest import SignIn, Visit, text_of, visit

__all__ = ["address", "ann", "database", "pepper", "shared_database", "windows"]

pytestmark = [pytest.mark.programs, pytest.mark.usefixtures("database", "store")]


@pytest.fixture
def eve(address: str) -> Iterator[Person]:
    """Somebody who has signed up."""
    with signed_up(address, "eve") as one:
        yield one


@pytest.fixture
def owner(address: str, eve: Person, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visit]:
    """Her browser, on a platform that sends mail."""
    monkeypatch.setattr(mail, "reaches_users", lambda _config: True)
    client = Client(address, eve.secret)
    yield visit(sessions.SESSIONS.start(client, client.account(), email=eve.email), monkeypatch)
    client.close()


def press(page: AppTest, label: str) -> None:
    """Click the button that says so."""
    (button,) = [one for one in page.button if one.label == label]
    button.click().run()


def state(eve: Person) -> str:
    """What the API says."""
    return str(eve.http.get("/gridline/v1/mail_notices").json()["state"])


def test_a_user_asks_confirms_and_stops(eve: Person, owner: Visit) -> None:
    """A code is asked for; a wrong one is told and changes nothing, the right one turns it on; one button stops it."""
    page = owner.run("account")
    press(page, "Mail me when a batch ends")
    assert state(eve) == "unconfirmed"
    with unit_of_work() as work:
        code = work.session.scalars(
            select(MailChoice.code).join(User, User.id == MailChoice.user_id).where(User.email == eve.email)
        ).one()
    for typed, after in (("wrong", "unconfirmed"), (str(code), "on")):
        next(one for one in page.text_input if one.label == "Code").input(typed)
        press(page, "Confirm")
        assert state(eve) == after
        assert ("not the code of the newest mail" in text_of(page)) == (after == "unconfirmed")
    assert f"Mails go to {eve.email}." in text_of(owner.run("account"))
    press(page, "Stop the mails")
    assert state(eve) == "off"


def test_who_has_no_address_here_is_asked_nothing(address: str, ann: Customer, sign_in: SignIn) -> None:
    """Who signed in with a token has no e-mail that could be mailed."""
    assert "Mail when a batch ends" not in text_of(sign_in(address, ann.token).run("account"))


def test_a_platform_without_mail_says_so(eve: Person, owner: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The button's answer is the API's sentence, with another way."""
    monkeypatch.setattr(mail, "reaches_users", lambda _config: False)
    page = owner.run("account")
    press(page, "Mail me when a batch ends")
    assert "This platform sends no mail" in text_of(page)
