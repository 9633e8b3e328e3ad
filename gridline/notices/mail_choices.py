"""Whether a user is mailed when batches of the account end: only who has shown that the address is theirs.

Nobody checks an address when its owner signs up, so the wish holds only after a code that was mailed there came back.
"""

import hmac
import secrets
from datetime import timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert

from gridline import ids, limits
from gridline.customers import audit
from gridline.customers.tables import User
from gridline.db.work import Work
from gridline.errors import NotFound
from gridline.notices.tables import MailChoice, OwedMail

CODE = "code"
"""The type of the mail that brings one."""
TOPIC = "mails"


class Answer(StrEnum):
    """What became of a code that came back."""

    RIGHT = "right"
    WRONG = "wrong"
    OVER = "over"
    """Too old, tried too often, or none was asked for."""


def ask(work: Work, user_id: str, account_id: str) -> None:
    """Owe the user a mail with a new code; one that was confirmed before stays so."""
    values = {"code": f"{secrets.randbelow(10**8):08}", "asked_at": work.now, "tries": 0}
    work.session.execute(
        insert(MailChoice)
        .values(user_id=user_id, account_id=account_id, **values)
        .on_conflict_do_update(index_elements=["user_id"], set_={**values, "account_id": account_id})
    )
    mail = OwedMail(
        user_id=user_id,
        event_id=ids.new("event"),
        account_id=account_id,
        type=CODE,
        subject_id=user_id,
        created_at=work.now,
        due_at=work.now,
    )
    work.session.add(mail)
    work.session.flush()
    work.notify(TOPIC)


def confirm(work: Work, user_id: str, code: str, *, actor: str) -> Answer:
    """Look at a code that came back; a wrong one counts, so the caller must let this unit of work commit."""
    choice = work.session.get(MailChoice, user_id, with_for_update=True, populate_existing=True)
    if choice is None or choice.code is None:
        return Answer.OVER
    if _over(work, choice):
        return Answer.OVER
    choice.tries += 1
    if not hmac.compare_digest(choice.code.encode(), code.encode(errors="surrogateescape")):
        return Answer.WRONG
    choice.code, choice.confirmed_at = None, choice.confirmed_at or work.now
    audit.record(work, account_id=choice.account_id, actor=actor, action="mails.on", details={})
    return Answer.RIGHT


def _over(work: Work, choice: MailChoice) -> bool:
    late = work.now >= choice.asked_at + timedelta(seconds=limits.MAIL_CODE_SECONDS)
    return late or choice.tries >= limits.MAIL_CODE_TRIES_MAX


def stop(work: Work, user_id: str, *, actor: str) -> None:
    """Mail the user nothing more, also what was owed already. Twice is as good as once."""
    gone = work.session.execute(
        delete(MailChoice).where(MailChoice.user_id == user_id).returning(MailChoice.account_id)
    ).scalar_one_or_none()
    if gone is not None:
        audit.record(work, account_id=gone, actor=actor, action="mails.off", details={})


def shown(work: Work, user_id: str) -> dict[str, Any]:
    """As the API shows it: ``off``, ``unconfirmed`` (a code was mailed) or ``on``."""
    user = work.session.get(User, user_id)
    if user is None:
        raise NotFound("No such user.")
    choice = work.session.get(MailChoice, user_id)
    state = "off" if choice is None else "unconfirmed" if choice.confirmed_at is None else "on"
    return {"object": "gridline.mail_notices", "email": user.email, "state": state}
