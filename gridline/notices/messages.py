"""Messages to the operator: stored at once, mailed later by the keeper where mail is set up."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from gridline import ids, limits
from gridline.clock import unix
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.notices.requests import MessageRequest
from gridline.notices.tables import Message

TOPIC = "messages"
FIRST_PAUSE_SECONDS = 60
PAUSE_SECONDS_MAX = 3_600


@dataclass(frozen=True)
class Letter:
    """A message with the name of the account that wrote it."""

    id: str
    account_id: str
    account_name: str
    batch_id: str | None
    text: str
    created_at: datetime


_LETTER = select(
    Message.id, Message.account_id, Account.name, Message.batch_id, Message.text, Message.created_at
).join(Account, Account.id == Message.account_id)


def write(work: Work, account_id: str, wanted: MessageRequest, *, actor: str) -> Message:
    """Store a message; that its batch is the account's own was checked by the caller."""
    message = Message(
        id=ids.new("message"),
        account_id=account_id,
        batch_id=wanted.batch_id,
        text=wanted.text,
        actor=actor,
        created_at=work.now,
        mail_due_at=work.now,
    )
    work.session.add(message)
    work.session.flush()
    work.notify(TOPIC)
    return message


def latest(work: Work, *, limit: int) -> list[Letter]:
    """The newest messages of all accounts, newest first."""
    rows = _LETTER.order_by(Message.created_at.desc(), Message.sequence.desc()).limit(limit)
    return [Letter(*row) for row in work.session.execute(rows)]


def take_for_mail(work: Work) -> Letter | None:
    """The message whose mail is due the longest; until it is noted as mailed it is due again later, ever more rarely.

    A message that could not be mailed for a week is left to ``gridline ops messages``.
    """
    message = work.session.scalars(
        select(Message)
        .where(
            Message.mail_due_at <= work.now,
            Message.created_at > work.now - timedelta(days=limits.MESSAGE_MAIL_DAYS_MAX),
        )
        .order_by(Message.mail_due_at)
        .limit(1)
        .with_for_update(skip_locked=True)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if message is None:
        return None
    message.mail_due_at = work.now + pause(message.mail_attempts)
    message.mail_attempts += 1
    return Letter(*work.session.execute(_LETTER.where(Message.id == message.id)).one())


def pause(attempts: int) -> timedelta:
    """How long a mail waits for its next attempt after so many: a minute, then twice as long each time, an hour at most."""
    return timedelta(seconds=min(FIRST_PAUSE_SECONDS << min(attempts, 10), PAUSE_SECONDS_MAX))


def mailed(work: Work, message_id: str) -> None:
    """Note that the mail server took it."""
    message = work.session.get_one(Message, message_id, with_for_update=True)
    message.mail_due_at, message.mailed_at = None, message.mailed_at or work.now


def message_object(message: Message) -> dict[str, Any]:
    """A message as the API shows it."""
    return {
        "id": message.id,
        "object": "gridline.message",
        "created_at": unix(message.created_at),
        "batch_id": message.batch_id,
        "text": message.text,
    }
