"""Ended batches are mailed to the users who asked for it and confirmed their address, and to nobody else."""

from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest
from sqlalchemy import select

from gridline import limits
from gridline.batches import moves
from gridline.batches.states import Status
from gridline.clock import FrozenClock
from gridline.customers import users
from gridline.customers.tables import User
from gridline.db.work import unit_of_work
from gridline.errors import Unavailable
from gridline.keeper import forgetting, mailing
from gridline.ledger import posting
from gridline.notices import mail_choices
from gridline.notices.mail_choices import Answer
from gridline.notices.tables import MailChoice, OwedMail
from gridline.settings import Settings, read_settings
from gridline.storage.objects import Store
from tests.gridline.batches.bench import Bench
from tests.gridline.notices.mail_server import MailServer, serving


@pytest.fixture
def post() -> Iterator[MailServer]:
    """A real mail server that takes everything until the test says otherwise."""
    with serving() as one:
        yield one


@pytest.fixture(autouse=True)
def config(post: MailServer, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Mail is set up, without an operator to write to."""
    chosen = replace(
        read_settings({}), smtp_url=f"smtp://127.0.0.1:{post.port}", smtp_from="gridline@example.com"
    )
    monkeypatch.setattr(mailing, "settings", lambda: chosen)
    return chosen


@pytest.fixture
def bench(database: object, store: Store, clock: FrozenClock, user: User) -> Bench:
    """Batches of the user's account."""
    with unit_of_work() as work:
        account_id = users.account_of(work, user.id).id
    return Bench(clock, store, account_id)


@pytest.fixture
def user(database: object, clock: FrozenClock) -> User:
    """Somebody who signed up."""
    with unit_of_work() as work:
        posting.open_platform_books(work)
        return users.sign_up(work, "ann@example.com", "x", credits_nanos=10**9)


def ask(user: User) -> str:
    """Ask for mails; the code, as the mail has it."""
    with unit_of_work() as work:
        mail_choices.ask(work, user.id, users.account_of(work, user.id).id)
    with unit_of_work() as work:
        return str(work.session.get_one(MailChoice, user.id).code)


def send_back(user: User, code: str) -> Answer:
    """The code comes back."""
    with unit_of_work() as work:
        return mail_choices.confirm(work, user.id, code, actor=f"user:{user.id}")


def turned_on(user: User, post: MailServer) -> None:
    """Asked for, mailed and confirmed."""
    code = ask(user)
    assert mailing.mail_users() == 1
    assert send_back(user, code) is Answer.RIGHT
    post.mails.clear()


def ended(bench: Bench, status: Status = Status.FAILED) -> str:
    """A batch that ended; its id."""
    batch = bench.create()
    with unit_of_work() as work:
        moves.move(work, moves.locked(work, batch.id), status)
    return batch.id


def read(mail: bytes) -> EmailMessage:
    """A mail as a mail program reads it."""
    found = message_from_bytes(mail, policy=default)
    assert isinstance(found, EmailMessage)
    return found


def test_a_code_goes_out_first_and_nothing_else(user: User, bench: Bench, post: MailServer) -> None:
    """Until the code came back no batch is mailed; the mail goes to the user's address and has the code."""
    code = ask(user)
    ended(bench)
    assert mailing.mail_users() == 1
    (mail,) = map(read, post.mails)
    assert (mail["To"], mail["From"]) == ("ann@example.com", "gridline@example.com")
    assert code in mail.get_content()
    assert mailing.mail_users() == 0


def test_an_end_is_mailed_once(user: User, bench: Bench, post: MailServer, config: Settings) -> None:
    """To whoever turned it on: id, status, charge and the page; a second step finds nothing."""
    turned_on(user, post)
    batch_id = ended(bench)
    assert mailing.mail_users() == 1
    assert mailing.mail_users() == 0
    (mail,) = map(read, post.mails)
    assert mail["Subject"] == f"Gridline: {batch_id} failed"
    assert mail["Auto-Submitted"] == "auto-generated"
    body = mail.get_content()
    assert "charged: 0.000000000 credits" in body
    assert config.batch_page(batch_id) in body
    assert f"{config.public_dashboard_url}/account" in body


def test_another_account_is_mailed_nothing(user: User, bench: Bench, post: MailServer) -> None:
    """A user of one account hears nothing of another's batches."""
    turned_on(user, post)
    with unit_of_work() as work:
        other = users.account_of(work, users.sign_up(work, "bob@example.com", "x").id).id
    ended(Bench(bench.clock, bench.store, other))
    assert mailing.mail_users() == 0


def test_a_server_that_is_away_gets_it_later(user: User, bench: Bench, post: MailServer) -> None:
    """What it does not take stays due, ever more rarely, for a week and not for longer."""
    turned_on(user, post)
    post.refuse = "451 later"
    ended(bench)
    with pytest.raises(Unavailable):
        mailing.mail_users()
    assert mailing.mail_users() == 0
    bench.clock.advance(minutes=2)
    post.refuse = ""
    assert mailing.mail_users() == 1
    ended(bench)
    bench.clock.advance(days=limits.MESSAGE_MAIL_DAYS_MAX)
    assert mailing.mail_users() == 0


def test_a_code_that_is_too_old_is_not_sent(user: User, bench: Bench) -> None:
    """A mail that would come after its code's end is dropped."""
    ask(user)
    bench.clock.advance(seconds=limits.MAIL_CODE_SECONDS)
    assert mailing.mail_users() == 0


def test_a_code_is_for_a_few_tries_and_minutes(user: User, clock: FrozenClock) -> None:
    """A wrong code counts; after five, and after 15 minutes, the right one works no more; a new one does."""
    code = ask(user)
    wrong = f"{(int(code) + 1) % 10**8:08}"
    for _ in range(limits.MAIL_CODE_TRIES_MAX):
        assert send_back(user, wrong) is Answer.WRONG
    assert send_back(user, code) is Answer.OVER
    late = ask(user)
    clock.advance(seconds=limits.MAIL_CODE_SECONDS)
    assert send_back(user, late) is Answer.OVER
    assert send_back(user, ask(user)) is Answer.RIGHT
    assert send_back(user, late) is Answer.OVER


def test_whoever_stops_gets_nothing_more(user: User, bench: Bench, post: MailServer) -> None:
    """Also what was owed is not sent, and nothing is left of it; stopping twice is as good as once."""
    turned_on(user, post)
    ended(bench)
    for _ in range(2):
        with unit_of_work() as work:
            mail_choices.stop(work, user.id, actor="user:x")
    assert mailing.mail_users() == 0
    ended(bench)
    assert mailing.mail_users() == 0
    assert post.mails == []


def test_old_mails_are_forgotten(user: User, bench: Bench, post: MailServer) -> None:
    """What is older than thirty days is deleted, whatever became of it."""
    turned_on(user, post)
    ended(bench)
    bench.clock.advance(days=limits.WEBHOOK_KEEP_DAYS, seconds=1)
    assert forgetting.forget() >= 2
    with unit_of_work() as work:
        assert work.session.scalars(select(OwedMail)).all() == []


def test_nothing_is_sent_where_mail_is_not_set_up(
    user: User, bench: Bench, post: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a server nothing is tried, and what is owed waits."""
    turned_on(user, post)
    ended(bench)
    with monkeypatch.context() as patch:
        patch.setattr(mailing, "settings", lambda: read_settings({}))
        assert mailing.mail_users() == 0
    assert mailing.mail_users() == 1
