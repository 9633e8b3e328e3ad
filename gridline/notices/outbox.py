"""What the end of a batch leaves for its account's webhooks and users, in the transaction that ends it."""

from datetime import datetime
from typing import Any

from sqlalchemy import func, literal, select
from sqlalchemy.dialects.postgresql import insert

from gridline import ids
from gridline.clock import unix
from gridline.db.work import CHANNEL, Work
from gridline.notices import mail_choices
from gridline.notices.tables import Delivery, MailChoice, OwedMail, Webhook

ENDS = ("batch.completed", "batch.failed", "batch.expired", "batch.cancelled")
"""The events that webhooks can ask for, with OpenAI's names."""
TEST = "webhook.test"
"""What a test sends: no batch has ended."""
TOPIC = "webhooks"


def batch_ended(work: Work, batch_id: str, *, account_id: str, status: str) -> None:
    """Owe the event to each webhook and each user of the account that asked for it: one statement, also for nobody."""
    kind = f"batch.{status}"
    # Locked against deletion, not against use: the end waits for a delete under way and then leaves that webhook out.
    asked = (
        select(Webhook.id)
        .where(
            Webhook.account_id == account_id, Webhook.disabled_at.is_(None), Webhook.events.contains([kind])
        )
        .with_for_update(read=True, key_share=True)
        .cte("asked")
    )
    event = {
        "event_id": ids.derived("event", batch_id, kind),
        "account_id": account_id,
        "type": kind,
        "subject_id": batch_id,
        "created_at": work.now,
        "due_at": work.now,
        "attempts": 0,
    }
    values = [literal(value, getattr(Delivery, name).type) for name, value in event.items()]
    made = (
        insert(Delivery)
        .from_select(["webhook_id", *event], select(asked.c.id, *values))
        .on_conflict_do_nothing()
        .returning(Delivery.webhook_id)
        .cte("made")
    )
    told = select(func.pg_notify(CHANNEL, TOPIC)).select_from(made).limit(1).subquery()
    owed = _mails(event).returning(OwedMail.user_id).cte("owed")
    mailed = select(func.pg_notify(CHANNEL, mail_choices.TOPIC)).select_from(owed).limit(1).subquery()
    work.session.execute(select(told).union_all(select(mailed)))


def _mails(event: dict[str, Any]) -> Any:
    """Owe the event to each user of the account who asked for mails and confirmed the address."""
    values = [literal(value, getattr(OwedMail, name).type) for name, value in event.items()]
    wanting = select(MailChoice.user_id, *values).where(
        MailChoice.account_id == event["account_id"], MailChoice.confirmed_at.is_not(None)
    )
    return insert(OwedMail).from_select(["user_id", *event], wanting).on_conflict_do_nothing()


def owe_test(work: Work, webhook: Webhook) -> Delivery:
    """Owe a test event to one webhook, whatever it asked for."""
    owed = Delivery(
        webhook_id=webhook.id,
        event_id=ids.new("event"),
        account_id=webhook.account_id,
        type=TEST,
        subject_id=webhook.id,
        created_at=work.now,
        due_at=work.now,
    )
    work.session.add(owed)
    work.session.flush()
    work.notify(TOPIC)
    return owed


def event_object(event_id: str, kind: str, *, subject_id: str, created_at: datetime) -> dict[str, object]:
    """The event as receivers get it: OpenAI's shape."""
    return {
        "id": event_id,
        "object": "event",
        "created_at": unix(created_at),
        "type": kind,
        "data": {"id": subject_id},
    }
