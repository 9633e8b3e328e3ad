"""Mails about ended batches: asked for, confirmed and stopped by a signed-in user, for that user's own address alone."""

from typing import Any

from flask import Blueprint

from api import auth, bodies, queries, rates
from api.reference.operations import operation
from gridline.db.work import reading, unit_of_work
from gridline.fields import keys_of, text_of
from gridline.notices import mail, mail_choices
from gridline.notices.errors import CodeOver, CodeWrong, MailNotSetUp
from gridline.notices.mail_choices import Answer
from gridline.settings import settings

KEYS = ("code",)

blueprint = queries.strict(auth.guard_for_users(Blueprint("mail_notices", __name__)))


@blueprint.get("/mail_notices")
@operation("Account", "readMailNotices", "Look whether batches' ends are mailed", returns="MailNotices")
def show() -> dict[str, Any]:
    """Whether you get a mail when a batch of your account ends, and at which address."""
    with reading() as work:
        return mail_choices.shown(work, _user_id())


@blueprint.post("/mail_notices")
@operation(
    "Account",
    "askForMailNotices",
    "Ask for a mail when a batch ends",
    returns="MailNotices",
    refuses=("mail_not_set_up", "rate_limit_exceeded"),
)
def ask() -> dict[str, Any]:
    """Have a code mailed to your address. Mails begin when it comes back; until then nothing else is sent there."""
    if not mail.reaches_users(settings()):
        raise MailNotSetUp(
            "This platform sends no mail. Use a webhook, or look at the batch: POST /gridline/v1/webhooks."
        )
    user_id = _user_id()
    rates.admit_mail_code(user_id)
    with unit_of_work() as work:
        mail_choices.ask(work, user_id, auth.caller().account_id)
        return mail_choices.shown(work, user_id)


@blueprint.post("/mail_notices/confirm")
@operation(
    "Account",
    "confirmMailNotices",
    "Confirm the address with the code",
    body="MailCode",
    returns="MailNotices",
    refuses=("invalid_code", "code_expired"),
)
def confirm() -> dict[str, Any]:
    """Send back the code that was mailed: it works for 15 minutes, and five tries."""
    code = text_of(keys_of(bodies.json_body(), known=KEYS, required=KEYS)["code"], "code").strip()
    user_id = _user_id()
    with unit_of_work() as work:
        answer = mail_choices.confirm(work, user_id, code, actor=auth.caller().actor)
        told = mail_choices.shown(work, user_id)
    if answer is Answer.WRONG:
        raise CodeWrong("This is not the code of the newest mail. Check it and try again.", param="code")
    if answer is Answer.OVER:
        raise CodeOver(
            "This code works no more: it is older than 15 minutes, or others were tried too often. Ask for a new one "
            "with POST /gridline/v1/mail_notices.",
            param="code",
        )
    return told


@blueprint.delete("/mail_notices")
@operation("Account", "stopMailNotices", "Stop the mails", returns="MailNotices")
def stop() -> dict[str, Any]:
    """Get no more mails, also none that was on its way. To have them again takes a new code."""
    user_id = _user_id()
    with unit_of_work() as work:
        mail_choices.stop(work, user_id, actor=auth.caller().actor)
        work.session.flush()
        return mail_choices.shown(work, user_id)


def _user_id() -> str:
    """Who is signed in: no token comes here."""
    return str(auth.caller().user_id)
