"""Mails customers' messages to the operator, one after another, where mail is set up."""

from gridline.db.work import unit_of_work
from gridline.errors import Unavailable
from gridline.notices import mail as mails
from gridline.notices import messages
from gridline.settings import settings
from gridline.telemetry import metrics

PASS_MAX = 20


def mail() -> int:
    """Mail what is due, some at a time; how many. A crash after the server took one mails it twice, never not at all.

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
        # Outside of any transaction: a slow server holds no row.
        try:
            mails.send(mails.compose(letter, config), config)
        except Unavailable:
            metrics.MAILS.labels("failed").inc()
            raise
        metrics.MAILS.labels("sent").inc()
        with unit_of_work() as work:
            messages.mailed(work, letter.id)
    return PASS_MAX
