"""The operator's commands, against a real database."""

import re

import pytest
from argon2 import PasswordHasher
from click.testing import CliRunner, Result
from sqlalchemy import Engine, text

from gridline.cli.main import main
from gridline.customers import passwords, sessions, tokens, users
from gridline.db.work import unit_of_work
from gridline.ledger.holding import place
from gridline.ledger.proving import prove
from gridline.ledger.settling import settle
from gridline.operate import accounts
from gridline.storage.objects import Store
from gridline.usage import facts
from tests.gridline.ledger.bench import CARD, account, batch


@pytest.fixture(autouse=True)
def pepper(database: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pepper for token hashes; every command works on the test's database."""
    monkeypatch.setattr(tokens, "hashed", lambda value: f"hash of {value}")
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "hasher", lambda: cheap)


def run(*arguments: str) -> Result:
    """What a command did."""
    return CliRunner().invoke(main, list(arguments))


def ok(*arguments: str) -> str:
    """What a command that works prints."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_an_account_is_opened_once(owner: Engine) -> None:
    """The same name twice is one account, shown with its limits and balance."""
    first, second = ok("ops", "account", "acme"), ok("ops", "account", "acme")
    assert first == second
    assert "available\t0.000000000" in first
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM accounts")).scalar() == 1


def test_a_forgotten_password_is_replaced(owner: Engine) -> None:
    """The new password is printed once and opens the user, all sessions are over, and the audit says who did it."""
    with unit_of_work() as work:
        user = users.sign_up(work, "ann@example.com", passwords.hashed("correct horse battery"))
        sessions.start(work, user.id)
    new = ok("ops", "password", "Ann@Example.com").strip()
    with unit_of_work() as work:
        found = users.find(work, "ann@example.com")
        assert found is not None
        assert passwords.matches(found.password_hash, passwords.chosen(new))
        assert not passwords.matches(found.password_hash, "correct horse battery")
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM sessions")).scalar() == 0
        said = connection.execute(
            text("SELECT actor, details::text FROM audit WHERE action = 'user.password_reset'")
        ).one()
    assert said.actor.startswith("operator:")
    assert new not in said.details
    assert run("ops", "password", "bob@example.com").exit_code == 1


def test_a_grant_with_a_key_is_given_once() -> None:
    """Repeating the command changes nothing; the books hold."""
    ok("ops", "account", "acme")
    for _ in range(2):
        shown = ok("ops", "grant", "acme", "2.5", "--why", "welcome", "--key", "one")
        assert shown == "available\t2.500000000\n"
    assert "The books hold" in ok("books")


def test_credits_are_in_the_audit(owner: Engine) -> None:
    """A grant and an adjustment are there with who, how much and why, once however often their command is repeated."""
    ok("ops", "account", "acme")
    for _ in range(2):
        ok("ops", "grant", "acme", "2.5", "--why", "welcome", "--key", "one")
        ok("ops", "adjust", "acme", "-1", "--why", "a mistake", "--key", "one")
    query = "SELECT actor, action, details->>'credits', details->>'why' FROM audit WHERE action <> 'account.opened'"
    with owner.connect() as connection:
        rows = [tuple(row) for row in connection.execute(text(f"{query} ORDER BY sequence"))]
    who = accounts.operator()
    assert rows == [
        (who, "account.grant", "2.500000000", "welcome"),
        (who, "account.adjust", "-1.000000000", "a mistake"),
    ]


def test_a_grant_finer_than_a_nano_credit_is_a_usage_error() -> None:
    """Nothing is rounded."""
    ok("ops", "account", "acme")
    result = run("ops", "grant", "acme", "0.0000000001", "--why", "x")
    assert result.exit_code == 2
    assert "at most nine after the point" in result.output


def test_an_adjustment_is_made_once_and_takes_only_what_is_there() -> None:
    """Either sign, once for its key; more than is available is refused with both numbers, another amount by the key."""
    ok("ops", "account", "acme")
    for _ in range(2):
        shown = ok("ops", "adjust", "acme", "2.5", "--why", "goodwill", "--key", "one")
        assert shown == "available\t2.500000000\n"
    assert ok("ops", "adjust", "acme", "-0.5", "--why", "a mistake") == "available\t2.000000000\n"
    short = run("ops", "adjust", "acme", "-2.000000001", "--why", "too much")
    assert short.exit_code == 1
    assert "2.000000001 credits are needed, 2.000000000 are available" in short.output
    other = run("ops", "adjust", "acme", "1", "--why", "goodwill", "--key", "one")
    assert other.exit_code == 1
    assert "was used before for another adjust" in other.output
    assert run("ops", "adjust", "acme", "-1", "--wyh", "x", "--why", "x").exit_code == 2
    assert "The books hold" in ok("books")


def test_a_refund_names_a_batch_that_was_charged(database: Engine) -> None:
    """The charge goes back to its account in parts; more than is left is refused, and so is an unknown batch."""
    with unit_of_work() as work:
        one = account(work, "acme", credit_nanos=10**9)
        made = batch(work, one.id).id
        place(work, batch_id=made, account_id=one.id, amount_nanos=400, card=CARD)
        facts.record(
            work, batch_id=made, account_id=one.id, usage_by_model={CARD["id"]: (1, 3, 4)}, card=CARD
        )
        settle(work, batch_id=made, charge_nanos=300, lines=1, input_tokens=3, output_tokens=4)
    for _ in range(2):
        shown = ok("ops", "refund", made, "0.0000001", "--why", "late", "--key", "one")
        assert shown == "refunded\t0.000000100\n"
    over = run("ops", "refund", made, "0.000000201", "--why", "late")
    assert over.exit_code == 1
    assert "at most 0.000000200 can be refunded" in over.output
    assert run("ops", "refund", "batch_none", "1", "--why", "late").exit_code == 1
    with unit_of_work() as work:
        assert prove(work) == []


def test_a_token_is_printed_once_and_audited(owner: Engine) -> None:
    """Only its text is printed; who made it, for what, and not its text, stands in the audit."""
    ok("ops", "account", "acme")
    shown = ok("ops", "token", "acme", "--name", "laptop", "--scopes", "read").strip()
    assert re.fullmatch(r"gl_live_[0-9A-Za-z]{38}", shown)
    with owner.connect() as connection:
        rows = connection.execute(
            text("SELECT actor, details::text FROM audit WHERE action = 'token.issued'")
        ).all()
    ((actor, details),) = rows
    assert actor.startswith("operator:")
    assert "laptop" in details
    assert "read" in details
    assert shown not in details


def test_an_unknown_scope_is_refused_in_a_sentence() -> None:
    """The scopes that there are are named; no token is made."""
    ok("ops", "account", "acme")
    result = run("ops", "token", "acme", "--scopes", "write")
    assert result.exit_code == 1
    assert "routing:write" in result.output
    assert "Traceback" not in result.output


def test_an_unknown_account_says_how_to_open_it() -> None:
    """A misspelt name is no new account."""
    result = run("ops", "grant", "nobody", "1", "--why", "x")
    assert result.exit_code == 1
    assert "gridline ops account nobody" in result.output


def test_limits_are_changed_and_audited(owner: Engine) -> None:
    """Only what was named changes; the audit says to what and why."""
    ok("ops", "account", "acme")
    ok("ops", "limit", "acme", "--open-batches", "5", "--credits-per-day", "7", "--why", "asked for")
    ok("ops", "limit", "acme", "--gpus", "3", "--why", "asked for")
    ok("ops", "limit", "acme", "--requests-per-minute", "1200", "--why", "asked for")
    with owner.connect() as connection:
        limits = connection.execute(
            text(
                "SELECT open_batches_max, daily_credits_nanos_max, leases_max, requests_per_minute_max FROM accounts"
            )
        ).one()
        changes = connection.execute(
            text("SELECT actor, details FROM audit WHERE action = 'account.limits' ORDER BY sequence")
        ).all()
    assert tuple(limits) == (5, 7 * 10**9, 3, 1200)
    assert all(actor.startswith("operator:") for actor, _ in changes)
    assert [details for _, details in changes] == [
        {"open_batches_max": 5, "daily_credits_nanos_max": 7 * 10**9, "why": "asked for"},
        {"leases_max": 3, "why": "asked for"},
        {"requests_per_minute_max": 1200, "why": "asked for"},
    ]


@pytest.mark.parametrize("limit", [[], ["--leases", "-1"]])
def test_a_limit_that_says_nothing_or_is_negative_is_refused(limit: list[str]) -> None:
    """No limit named, or one below zero: a sentence, and no audit of nothing."""
    ok("ops", "account", "acme")
    result = run("ops", "limit", "acme", *limit, "--why", "x")
    assert result.exit_code == 1


def test_models_are_listed_with_their_state() -> None:
    """Before qualification nothing is listed for customers."""
    shown = ok("models", "list")
    assert "smollm2-135m-instruct\tnot qualified" in shown
    assert "\tlisted\t" not in shown


def test_broken_books_are_told_and_end_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each broken promise is a sentence; the exit status is 1."""
    from gridline.ledger import proving  # what the command asks

    monkeypatch.setattr(proving, "prove", lambda work: ["book x is off"])
    result = run("books")
    assert result.exit_code == 1
    assert "book x is off" in result.output


def test_books_with_files_say_how_many_batches_they_read(store: Store) -> None:
    """With --files every charge is computed again, and the answer says of how many batches."""
    ok("ops", "account", "acme")
    assert ok("books", "--files").endswith("The files of 0 batches bear out their charges.\n")


def test_the_units_of_work_are_the_tests_own() -> None:
    """Guards this file: commands would otherwise reach for a real installation."""
    with unit_of_work() as work:
        name = work.session.execute(text("SELECT current_database()")).scalar_one()
    assert name.startswith("test_")
