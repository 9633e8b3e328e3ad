"""`gridline setup` against the live API: from nothing to a token that commands find, once however often it runs."""

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from gridline.cli import configuration
from gridline.cli import setup as command
from gridline.cli.main import main
from gridline.customers import sessions, users
from gridline.customers.tables import Session, Token
from gridline.db.work import unit_of_work
from gridline.settings import settings
from gridline.storage.objects import Store
from tests.api.people import PASSWORD, Person, fresh_email, signed_up

Run = Callable[..., Result]


@pytest.fixture
def run(
    address: str, database: Engine, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    """Runs a command in a home of its own, in a pipe; ``given`` are further variables."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("GRIDLINE_API_URL", address)

    def one(*words: str, status: int = 0, typed: str | None = None, **given: str) -> Result:
        settings.cache_clear()
        done = CliRunner().invoke(main, words, env=given, input=typed)
        assert done.exit_code == status, done.output
        return done

    yield one
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def eve(address: str, run: Run) -> Iterator[Person]:
    """Somebody who has signed up before."""
    with signed_up(address, "eve") as one:
        yield one


def live(account_id: str) -> tuple[int, int]:
    """How many tokens and sessions the account has."""
    with unit_of_work() as work:
        held = work.session.query(Token).filter_by(account_id=account_id, revoked_at=None).count()
        return held, work.session.query(Session).filter_by(account_id=account_id).count()


def test_without_apply_it_only_says_what_it_would_do(run: Run, address: str) -> None:
    """No file, no user, no question: address and file are named."""
    told = run("setup").output
    assert address in told
    assert str(configuration.path()) in told
    assert "Nothing has been done" in told
    assert not configuration.path().exists()


def test_somebody_new_is_set_up_once(run: Run) -> None:
    """Signs up, keeps one token for this user alone, and leaves no session; a second run changes nothing; commands work."""
    email = fresh_email("new")
    who = {"GRIDLINE_EMAIL": email, "GRIDLINE_PASSWORD": PASSWORD}
    refused = run("setup", "--apply", status=1, **who).output
    assert "--sign-up" in refused
    first = run("setup", "--apply", "--sign-up", **who).output
    assert "gridline balance" in first
    kept = configuration.path().read_text()
    assert stat.S_IMODE(configuration.path().stat().st_mode) == 0o600
    assert "Nothing to do" in run("setup", "--apply").output
    assert configuration.path().read_text() == kept
    with unit_of_work() as work:
        user = users.find(work, email)
        assert user is not None
        account_id = users.account_of(work, user.id).id
    assert live(account_id) == (1, 0)
    held = configuration.load()
    assert held is not None
    assert not [secret for secret in (PASSWORD, held.token, sessions.PREFIX) if secret in first]
    assert json.loads(run("balance").stdout) == {"available": "0.000000000", "held": "0.000000000"}


def test_a_user_signs_in(run: Run, eve: Person) -> None:
    """Who has signed up before gets a token of that account; the session that was open goes on."""
    run("setup", "--apply", GRIDLINE_EMAIL=eve.email, GRIDLINE_PASSWORD=PASSWORD)
    assert live(eve.account_id) == (1, 1)


def test_a_revoked_token_is_replaced(run: Run, eve: Person) -> None:
    """When the kept token opens nothing any more, running it again makes another."""
    who = {"GRIDLINE_EMAIL": eve.email, "GRIDLINE_PASSWORD": PASSWORD}
    run("setup", "--apply", **who)
    before = configuration.load()
    (token,) = eve.http.get("/gridline/v1/tokens").json()["data"]
    eve.http.delete(f"/gridline/v1/tokens/{token['id']}")
    run("setup", "--apply", **who)
    assert configuration.load() != before
    run("balance")


def test_it_asks_and_shows_no_password(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal it asks for address, e-mail and password, whether to sign up, and the password again; none is echoed."""
    monkeypatch.setattr(command, "_asks", lambda: True)
    email = fresh_email("asked")
    answers = ["", email, PASSWORD, "y", PASSWORD]
    told = run("setup", "--apply", typed="\n".join(answers) + "\n").output
    assert f"for {email}" in told
    assert PASSWORD not in told
    configuration.path().unlink()
    other = ["", fresh_email("typo"), PASSWORD, "y", PASSWORD + "x"]
    assert "not the same" in run("setup", "--apply", status=1, typed="\n".join(other) + "\n").output
    declined = ["", fresh_email("no"), PASSWORD, "n"]
    run("setup", "--apply", status=1, typed="\n".join(declined) + "\n")
    assert not configuration.path().exists()


def test_where_nobody_can_be_asked_the_variable_is_named(run: Run) -> None:
    """In a pipe a missing e-mail is an error that says which variable to set."""
    assert "GRIDLINE_EMAIL" in run("setup", "--apply", status=1).output
    assert "GRIDLINE_PASSWORD" in run("setup", "--apply", status=1, GRIDLINE_EMAIL="a@b.de").output


def test_a_token_that_cannot_be_kept_is_revoked(run: Run, eve: Person) -> None:
    """When the file cannot be written nothing is left over: no token, no session of its own."""
    in_the_way = configuration.path().with_name(f".client.toml.{os.getpid()}")
    in_the_way.mkdir(parents=True)
    refused = run("setup", "--apply", status=1, GRIDLINE_EMAIL=eve.email, GRIDLINE_PASSWORD=PASSWORD)
    assert "client.toml cannot be written" in refused.output
    assert live(eve.account_id) == (0, 1)
