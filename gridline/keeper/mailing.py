"""Mails customers' messages to the operator, and ended batches to the users who asked for it, where mail is set up."""

from email.message import EmailMessage

from gridline.batches import reading as batches
from gridline.db.work import reading, unit_of_work
from gridline.errors import NotFound, Unavailable
from gridline.notices import mail as mails
from gridline.notices import mail_choices, mail_texts, messages, owed_mails
from gridline.notices.owed_mails import Owed
from gridline.settings import Settings, settings
from gridline.telemetry import metrics

PASS_MAX = 20


def mail() -> int:
    """Mail the operator what is due, some at a time; how many. A crash after the server took one mails it twice, never not.

    Raises:
        Unavailable: the mail server is away; what is not mailed stays due.
    """
    config = settings()
    if not mails.is_set_up(config):
        return 0
    for sent in range(PASS_MAX):
        with unit_of_work() as work:
            letter = messages.take_for_mail(work)
        if letter is None:
            return sent
        _send(mails.compose(letter, config), config)
        with unit_of_work() as work:
            messages.mailed(work, letter.id)
    return PASS_MAX


def mail_users() -> int:
    """Mail users what is due, as ``mail`` does; how many.

    Raises:
        Unavailable: as above.
    """
    config = settings()
    if not mails.reaches_users(config):
        return 0
    for sent in range(PASS_MAX):
        with unit_of_work() as work:
            owed = owed_mails.take(work)
        if owed is None:
            return sent
        composed = _composed(owed, config)
        if composed is not None:
            _send(composed, config)
        with unit_of_work() as work:
            owed_mails.mailed(work, owed)
    return PASS_MAX


def _composed(owed: Owed, config: Settings) -> EmailMessage | None:
    """The mail; None where there is nothing left to say: its code came back by now, or its batch is gone."""
    if owed.type == mail_choices.CODE:
        return mail_texts.code(owed, config) if owed.code else None
    try:
        with reading() as work:
            batch = batches.show(work, account_id=owed.account_id, batch_id=owed.subject_id, explained=True)
    except NotFound:
        return None
    return mail_texts.ended(owed, batch, config)


def _send(mail: EmailMessage, config: Settings) -> None:
    """Outside of any transaction: a slow server holds no row."""
    try:
        mails.send(mail, config)
    except Unavailable:
        metrics.MAILS.labels("failed").inc()
        raise
    metrics.MAILS.labels("sent").inc()
