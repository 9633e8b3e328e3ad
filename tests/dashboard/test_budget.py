"""The monthly budget on the page of the account, on the live API."""

from collections.abc import Iterator

import pytest

from dashboard import sessions
from gridline.client import Client
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
    """Her browser, signed in with e-mail and password."""
    client = Client(address, eve.secret)
    yield visit(sessions.SESSIONS.start(client, client.account(), email=eve.email), monkeypatch)
    client.close()


def saved(browser: Visit, text: str) -> str:
    """The page after typing an amount and saving it."""
    browser.page.text_input[0].input(text)
    browser.page.button[0].click()
    return text_of(browser.run())


def test_an_owner_sets_changes_and_removes_it(eve: Person, owner: Visit) -> None:
    """What is typed is what the API has; the field shows it again as it would be typed; emptied, there is none."""

    def held() -> object:
        month = eve.http.get("/gridline/v1/account").json()["limits"]["monthly_budget"]
        return month and month["limit"]

    assert "Your budget a UTC month" not in text_of(owner.run("account"))
    for typed, kept, again in (("1250.50", "1250.500000000", "1250.5"), ("3", "3.000000000", "3")):
        assert "Your budget a UTC month" in saved(owner, typed)
        assert held() == kept
        assert owner.page.text_input[0].value == again
    assert "no amount of 0 to" in saved(owner, "three")
    assert held() == "3.000000000"
    assert "Your budget a UTC month" not in saved(owner, "")
    assert held() is None


def test_a_token_is_told_who_may(address: str, ann: Customer, sign_in: SignIn) -> None:
    """Who signed in with a token sees no form: it could only be refused."""
    page = sign_in(address, ann.token).run("account")
    assert "Sign in with e-mail and password to set a monthly budget." in text_of(page)
    assert len(page.text_input) == 0
