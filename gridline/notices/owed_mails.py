"""Mails that users are owed: taken one at a time, noted when the mail server has them, given up after some days."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select, tuple_

from gridline import limits
from gridline.customers.tables import User
from gridline.db.work import Work
from gridline.notices.mail_choices import CODE
from gridline.notices.messages import pause
from gridline.notices.tables import MailChoice, OwedMail

FORGET_ROWS_MAX = 5_000


@dataclass(frozen=True)
class Owed:
    """One mail to send: to whom, about what, and the code if that is what it brings."""

    user_id: str
    event_id: str
    email: str
    account_id: str
    type: str
    subject_id: str
    created_at: datetime
    code: str | None


def take(work: Work) -> Owed | None:
    """The mail that is due the longest; until it is noted as mailed it is due again later, ever more rarely.

    A code that would come too late is not sent any more, and a mail that could not be sent for some days neither.
    """
    while (mail := _longest_due(work)) is not None and work.now >= mail.created_at + _kept(mail.type):
        mail.due_at = None
        work.session.flush()
    if mail is None:
        return None
    mail.due_at = work.now + pause(mail.attempts)
    mail.attempts += 1
    email, code = work.session.execute(
        select(User.email, MailChoice.code)
        .join(MailChoice, MailChoice.user_id == User.id)
        .where(User.id == mail.user_id)
    ).one()
    return Owed(
        user_id=mail.user_id,
        event_id=mail.event_id,
        email=email,
        account_id=mail.account_id,
        type=mail.type,
        subject_id=mail.subject_id,
        created_at=mail.created_at,
        code=code,
    )


def _longest_due(work: Work) -> OwedMail | None:
    return work.session.scalars(
        select(OwedMail)
        .where(OwedMail.due_at <= work.now)
        .order_by(OwedMail.due_at)
        .limit(1)
        .with_for_update(skip_locked=True)
        .execution_options(populate_existing=True)
    ).one_or_none()


def _kept(kind: str) -> timedelta:
    """How long a mail is tried."""
    if kind == CODE:
        return timedelta(seconds=limits.MAIL_CODE_SECONDS)
    return timedelta(days=limits.MESSAGE_MAIL_DAYS_MAX)


def mailed(work: Work, owed: Owed) -> None:
    """Note that the mail server took it; nothing where its user was asked off the list meanwhile."""
    mail = work.session.get(OwedMail, (owed.user_id, owed.event_id), with_for_update=True)
    if mail is not None:
        mail.due_at, mail.mailed_at = None, mail.mailed_at or work.now


def forget(work: Work) -> int:
    """Delete some of the mails that are older than 30 days, whatever became of them; how many. 0: none is left."""
    key = tuple_(OwedMail.user_id, OwedMail.event_id)
    some = (
        select(OwedMail.user_id, OwedMail.event_id)
        .where(OwedMail.created_at < work.now - timedelta(days=limits.WEBHOOK_KEEP_DAYS))
        .order_by(OwedMail.created_at)
        .limit(FORGET_ROWS_MAX)
    )
    return len(work.session.execute(delete(OwedMail).where(key.in_(some)).returning(OwedMail.event_id)).all())
