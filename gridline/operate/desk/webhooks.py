"""Webhooks of all accounts as operators read them: those that fail first. Of an address its host only."""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from sqlalchemy import func, select

from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.notices.tables import Delivery, Webhook


@dataclass(frozen=True)
class Row:
    """A webhook in the list."""

    id: str
    account_id: str
    account: str
    host: str
    failing_since: datetime | None
    open_deliveries: int
    disabled_reason: str | None


def page(work: Work, *, limit: int) -> list[Row]:
    """The webhooks that have failed the longest, then the newest of the others."""
    owed = (
        select(Delivery.webhook_id, func.count().label("count"))
        .where(Delivery.due_at.is_not(None))
        .group_by(Delivery.webhook_id)
        .subquery()
    )
    found = (
        select(Webhook, Account.name, func.coalesce(owed.c.count, 0))
        .join(Account, Account.id == Webhook.account_id)
        .outerjoin(owed, owed.c.webhook_id == Webhook.id)
        .order_by(Webhook.failing_since.nulls_last(), Webhook.sequence.desc())
        .limit(limit)
    )
    return [
        Row(
            id=webhook.id,
            account_id=webhook.account_id,
            account=name,
            # The path and query of an address may be a secret of the customer's.
            host=urlsplit(webhook.url).hostname or "",
            failing_since=webhook.failing_since,
            open_deliveries=count,
            disabled_reason=webhook.disabled_reason,
        )
        for webhook, name, count in work.session.execute(found)
    ]
