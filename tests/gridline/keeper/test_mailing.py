"""Messages to the operator are mailed by a real server's leave, at least once, and never with a header of the customer's."""

import logging
import socket
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest
from sqlalchemy import Engine, update

from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import SettingInvalid, Unavailable
from gridline.keeper import mailing
from gridline.notices import mail as mails
from gridline.notices import messages
from gridline.notices.requests import MessageRequest
from gridline.settings import Settings, read_settings
from tests.gridline.notices.mail_server import MailServer, serving

BATCH = "batch_" + "0" * 24
TEXT = "Hello,\n.\nSubject: not a header\r\nBcc: x@example.com\n\nwhy? " + "ü" * 900


@pytest.fixture
def post() -> Iterator[MailServer]:
    """A mail server that takes everything until the test says otherwise."""
    with serving() as one:
        yield one


@pytest.fixture
def account_id(database: Engine, clock: FrozenClock) -> str:
    """An account."""
    with unit_of_work() as work:
        return accounts.open_account(work, "tester").id


@pytest.fixture
def config(post: MailServer, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Mail is set up."""
    chosen = replace(
        read_settings({}),
        smtp_url=f"smtp://127.0.0.1:{post.port}",
        smtp_from="gridline@example.com",
        operator_email="ops@example.com",
    )
    monkeypatch.setattr(mailing, "settings", lambda: chosen)
    return chosen


def write(account_id: str, text: str = TEXT, batch_id: str | None = BATCH) -> str:
    """A message; its id."""
    with unit_of_work() as work:
        return messages.write(work, account_id, MessageRequest(text, batch_id), actor="token:t").id


def read(mail: bytes) -> EmailMessage:
    """A mail as a mail program reads it."""
    found = message_from_bytes(mail, policy=default)
    assert isinstance(found, EmailMessage)
    return found


def test_a_message_is_mailed_once(account_id: str, config: Settings, post: MailServer) -> None:
    """To the operator, with account, batch and the whole text; a second step finds nothing to mail."""
    message_id = write(account_id)
    assert mailing.mail() == 1
    assert mailing.mail() == 0
    (mail,) = map(read, post.mails)
    assert mail["Subject"] == f"Gridline: message {message_id} from account {account_id}"
    assert (mail["From"], mail["To"]) == ("gridline@example.com", "ops@example.com")
    assert mail["Message-ID"] == f"<{message_id}@gridline>"
    body = mail.get_content()
    assert f"batch: {BATCH}, {config.batch_page(BATCH)}" in body
    assert "".join(TEXT.split()) in "".join(body.split())


def test_no_text_becomes_a_header(account_id: str, config: Settings, post: MailServer) -> None:
    """Neither the message nor the account's name adds a header or a recipient."""
    with unit_of_work() as work:
        name = "x\r\nBcc: evil@example.com\n\nBody"
        work.session.execute(update(Account).values(name=name))
    write(account_id, text="\r\nBcc: evil@example.com\r\n.\r\nRCPT TO:<evil@example.com>\r\n")
    assert mailing.mail() == 1
    (mail,) = map(read, post.mails)
    assert set(mail.keys()) == {
        "Subject", "From", "To", "Date", "Message-ID", "Content-Type", "Content-Transfer-Encoding", "MIME-Version",
    }  # fmt: skip
    assert post.recipients == ["rcpt TO:<ops@example.com>"]
    assert len(post.senders) == 1


def test_without_mail_nothing_is_asked_and_all_is_kept(
    account_id: str, post: MailServer, config: Settings
) -> None:
    """Where no server or no operator is named nothing is sent; what was written in the week before is, later."""
    write(account_id)
    for lacking in (replace(config, smtp_url=""), replace(config, operator_email="")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mailing, "settings", lambda one=lacking: one)
            assert mailing.mail() == 0
    assert post.mails == []
    assert mailing.mail() == 1


def test_a_server_that_is_away_gets_it_later(
    account_id: str, config: Settings, post: MailServer, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tried again after a minute, then ever more rarely, for a week; the error has none of the mail's words."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        away = replace(config, smtp_url=f"smtp://127.0.0.1:{closed.getsockname()[1]}")
        write(account_id, text="my secret words")
        with monkeypatch.context() as patch:
            patch.setattr(mailing, "settings", lambda: away)
            for minutes in (1, 2, 4):
                with pytest.raises(Unavailable, match="did not take a mail") as error:
                    mailing.mail()
                assert "secret" not in str(error.value)
                assert mailing.mail() == 0
                clock.advance(minutes=minutes)
    post.refuse = "554 no: my secret words"
    with pytest.raises(Unavailable) as error:
        mailing.mail()
    assert "secret" not in error.value.message
    post.refuse = ""
    clock.advance(hours=1)
    assert mailing.mail() == 1
    write(account_id)
    clock.advance(days=7)
    assert mailing.mail() == 0


def test_a_crash_after_sending_mails_it_again(
    account_id: str, config: Settings, post: MailServer, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least once: the second mail has the first one's Message-ID."""

    def away(*_: object) -> None:
        raise Unavailable("away")

    write(account_id)
    with monkeypatch.context() as patch:
        patch.setattr(messages, "mailed", away)
        with pytest.raises(Unavailable):
            mailing.mail()
    clock.advance(minutes=1)
    assert mailing.mail() == 1
    assert len({read(one)["Message-ID"] for one in post.mails}) == 1
    assert len(post.mails) == 2


def test_a_password_never_crosses_an_open_line(
    account_id: str, config: Settings, post: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that offers no encryption is sent neither the password nor the mail."""
    url = config.smtp_url.replace("//", "//user:hunter2@")
    mail = EmailMessage()
    with caplog.at_level(logging.DEBUG), pytest.raises(Unavailable) as error:
        mails.send(mail, replace(config, smtp_url=url))
    assert (post.logins, post.senders, post.mails) == ([], [], [])
    assert "hunter2" not in error.value.message + caplog.text


@pytest.mark.parametrize(
    "url", ["localhost", "http://localhost", "smtp://", "smtp://host:x", "smtp://host:99999"]
)
def test_a_server_that_cannot_be_read_is_refused(config: Settings, url: str) -> None:
    """The message says what the setting must look like."""
    with pytest.raises(SettingInvalid, match="GRIDLINE_SMTP_URL must be like smtp://"):
        mails.send(EmailMessage(), replace(config, smtp_url=url))
