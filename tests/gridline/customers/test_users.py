"""Users: one for each e-mail, with an account of their own."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, create_engine, select, text
from sqlalchemy.exc import ProgrammingError

from gridline.clock import FrozenClock
from gridline.customers import accounts, passwords, users
from gridline.customers.errors import EmailTaken
from gridline.customers.tables import Audit, Member, User
from gridline.db.work import unit_of_work
from gridline.errors import InvalidRequest
from gridline.ledger import posting, reading
from gridline.operate import postgres

ANN = "ann@example.com"


@pytest.fixture
def books(database: Engine, clock: FrozenClock) -> None:
    """The platform's own books, which grants come from."""
    with unit_of_work() as work:
        posting.open_platform_books(work)


def test_signing_up_opens_an_account_of_a_new_customer(database: Engine, clock: FrozenClock) -> None:
    """The user owns an account with the platform's default limits and no credit, and the audit says so."""
    with unit_of_work() as work:
        user = users.sign_up(work, ANN, passwords.hashed("correct horse battery"))
        account = users.account_of(work, user.id)
        assert work.session.get_one(Member, (user.id, account.id)).role == users.OWNER
        plain = accounts.open_account(work, "plain")
        for limit in ("open_batches_max", "leases_max", "daily_credits_nanos_max", "requests_per_minute_max"):
            assert getattr(account, limit) == getattr(plain, limit)
        assert reading.balance(work, account.id).available_nanos == 0
        said = work.session.scalars(select(Audit).where(Audit.account_id == account.id)).all()
    assert {(one.action, one.actor) for one in said} == {
        ("account.opened", f"user:{user.id}"),
        ("user.signed_up", f"user:{user.id}"),
    }
    assert "correct horse" not in str([one.details for one in said])


def test_credit_at_sign_up_is_a_setting(books: None) -> None:
    """What the setting gives is granted once, by the platform."""
    with unit_of_work() as work:
        user = users.sign_up(work, ANN, "hash", credits_nanos=5)
        assert reading.balance(work, users.account_of(work, user.id).id).available_nanos == 5


def test_an_e_mail_has_one_user(database: Engine, clock: FrozenClock) -> None:
    """Of many sign-ups with one e-mail at the same moment one makes a user; the others are refused and make nothing."""

    def one(_: int) -> bool:
        try:
            with unit_of_work() as work:
                users.sign_up(work, ANN, "hash")
        except EmailTaken:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(8))) == 1
    with database.connect() as connection:
        assert connection.execute(
            text("SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM accounts)")
        ).one() == (1, 1)


def test_an_operators_account_is_not_taken_over_by_its_name(database: Engine, clock: FrozenClock) -> None:
    """Who signs up with an e-mail that an operator named an account by gets another account."""
    with unit_of_work() as work:
        theirs = accounts.open_account(work, ANN)
        user = users.sign_up(work, ANN, "hash")
        assert users.account_of(work, user.id).id != theirs.id


@pytest.mark.parametrize(
    "written", ["Ann@Example.COM", "  ann@example.com\n", "\N{FULLWIDTH LATIN SMALL LETTER A}nn@example.com"]
)
def test_an_e_mail_has_one_form(written: str) -> None:
    """Capital letters, spaces around and wide letters make no second user."""
    assert users.normal_email(written) == ANN


@pytest.mark.parametrize(
    "wrong", ["", "ann", "@example.com", "ann@", "ann@example", "a b@example.com", "ann@exa mple.com", "a@b@c.de", "a\0@b.de", "\ud800@b.de", "x" * 65 + "@b.de", "a@" + "b" * 250 + ".de", 7, None]
)  # fmt: skip
def test_what_is_no_e_mail_is_refused_by_its_name(wrong: object) -> None:
    """Anything that no mail could reach is refused before it meets the database."""
    with pytest.raises(InvalidRequest) as caught:
        users.normal_email(wrong)
    assert caught.value.param == "email"


def test_who_only_reads_sees_no_hash(database: Engine, server: postgres.Postgres, database_name: str) -> None:
    """The read-only role can count users, and read neither their password hashes, nor who they are elsewhere, nor any session."""
    engine = create_engine(server.url(postgres.READ, database_name))
    try:
        with engine.connect() as connection:
            assert connection.execute(text("SELECT count(email) FROM users")).scalar_one() == 0
            assert connection.execute(text("SELECT count(issuer) FROM identities")).scalar_one() == 0
        for secret in (
            "SELECT password_hash FROM users",
            "SELECT hash FROM sessions",
            "SELECT subject FROM identities",
        ):
            with engine.connect() as connection, pytest.raises(ProgrammingError, match="permission denied"):
                connection.execute(text(secret))
    finally:
        engine.dispose()


def test_a_user_is_found_by_e_mail(database: Engine, clock: FrozenClock) -> None:
    """The normal form finds the user; another e-mail finds nobody."""
    with unit_of_work() as work:
        made = users.sign_up(work, ANN, "hash")
        found = users.find(work, ANN)
        assert isinstance(found, User)
        assert found.id == made.id
        assert users.find(work, "bob@example.com") is None
