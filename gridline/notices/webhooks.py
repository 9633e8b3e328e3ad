"""An account's webhooks: made, changed, their secrets rotated, and what was delivered to them."""

from datetime import timedelta
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy import update as update_rows

from gridline import ids, limits
from gridline.clock import unix
from gridline.customers import audit
from gridline.db.work import Work
from gridline.errors import Conflict, LimitExceeded, NotFound
from gridline.notices import signing
from gridline.notices.outbox import TOPIC
from gridline.notices.requests import WebhookRequest
from gridline.notices.tables import Delivery, Webhook

BY_CUSTOMER = "disabled_by_customer"
BY_OPERATOR = "disabled_by_operator"
FAILING = "failing"


def create(work: Work, account_id: str, wanted: WebhookRequest, *, actor: str) -> Webhook:
    """A new webhook with a secret of its own; its URL was checked by the caller, outside of this transaction.

    Raises:
        LimitExceeded: the account has as many as it may have.
    """
    # Two creates at once are counted one after another.
    work.session.execute(
        text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": f"webhooks:{account_id}"}
    )
    counted = select(func.count()).select_from(Webhook).where(Webhook.account_id == account_id)
    count = work.session.scalar(counted) or 0
    most = limits.WEBHOOKS_PER_ACCOUNT_MAX
    if count >= most:
        raise LimitExceeded(
            f"Your account has {count} of {most} webhooks. Delete one, then create this one again.",
            limit={"name": "webhooks", "limit": most, "current": count, "unit": "webhooks"},
        )
    webhook = Webhook(
        id=ids.new("webhook"),
        account_id=account_id,
        url=wanted.url,
        events=list(wanted.events or ()),
        secret=signing.new_secret(),
        created_at=work.now,
    )
    work.session.add(webhook)
    _audit(work, webhook, actor, "webhook.created")
    work.session.flush()
    return webhook


def get(work: Work, account_id: str, webhook_id: str, *, lock: bool = False) -> Webhook:
    """The account's webhook, locked against other changes if asked for.

    Raises:
        NotFound: missing and foreign alike.
    """
    found = select(Webhook).where(Webhook.id == webhook_id, Webhook.account_id == account_id)
    if lock:
        found = found.with_for_update().execution_options(populate_existing=True)
    webhook = work.session.scalars(found).one_or_none()
    if webhook is None:
        raise missing(webhook_id)
    return webhook


def missing(webhook_id: str) -> NotFound:
    """What every call about a webhook answers that is not there, or not the account's."""
    return NotFound(
        f"No webhook found with id '{webhook_id}'. GET /gridline/v1/webhooks lists yours.", param="webhook_id"
    )


def no_delivery(event_id: str) -> NotFound:
    """What a cursor gets that is no event of the webhook."""
    return NotFound(
        f"No delivery found with id '{event_id}'. Begin without 'after', or use a page's last_id.",
        param="after",
    )


def check_enabled(webhook: Webhook) -> None:
    """Go on only if the webhook gets events.

    Raises:
        Conflict: it is disabled.
    """
    if webhook.disabled_at is not None:
        raise Conflict(
            f"The webhook '{webhook.id}' is disabled ({webhook.disabled_reason}). Send it \"disabled\": false first, then "
            "test it again.",
            param="webhook_id",
        )


def every(work: Work, account_id: str) -> list[Webhook]:
    """All of the account's webhooks, newest first."""
    found = select(Webhook).where(Webhook.account_id == account_id).order_by(Webhook.sequence.desc())
    return list(work.session.scalars(found))


def update(work: Work, webhook: Webhook, wanted: WebhookRequest, *, actor: str) -> None:
    """Change what is not None. Enabled again, it gets what it is still owed at once."""
    if wanted.url is not None:
        webhook.url, webhook.failing_since = wanted.url, None
    if wanted.events is not None:
        webhook.events = list(wanted.events)
    if wanted.disabled and webhook.disabled_at is None:
        webhook.disabled_at, webhook.disabled_reason = work.now, BY_CUSTOMER
    if wanted.disabled is False and webhook.disabled_at is not None:
        webhook.disabled_at = webhook.disabled_reason = webhook.failing_since = None
        open_now = update_rows(Delivery).where(
            Delivery.webhook_id == webhook.id, Delivery.due_at.is_not(None)
        )
        work.session.execute(open_now.values(due_at=work.now))
        work.notify(TOPIC)
    _audit(work, webhook, actor, "webhook.changed")


def disable(work: Work, webhook_id: str, *, why: str, actor: str) -> bool:
    """Have an operator disable any account's webhook; its customer reads why. False when it was disabled before.

    What it is owed stays, and goes out once its customer has enabled it again.

    Raises:
        NotFound: no such webhook.
        InvalidRequest: no reason, or one that cannot be shown.
    """
    said = audit.reason(why)
    found = select(Webhook).where(Webhook.id == webhook_id).with_for_update()
    webhook = work.session.scalars(found.execution_options(populate_existing=True)).one_or_none()
    if webhook is None:
        raise NotFound(f"There is no webhook {webhook_id!r}. See 'gridline ops webhooks'.")
    if webhook.disabled_at is not None:
        return False
    webhook.disabled_at, webhook.disabled_reason = work.now, f"{BY_OPERATOR}: {said}"
    _audit(work, webhook, actor, "webhook.operator_disable", why=said)
    return True


def delete(work: Work, webhook: Webhook, *, actor: str) -> None:
    """Remove it with its deliveries; what is being sent right now may still arrive."""
    _audit(work, webhook, actor, "webhook.deleted")
    work.session.delete(webhook)


def rotate(work: Work, webhook: Webhook, *, actor: str) -> None:
    """Give it a new secret; the one before goes on signing beside it for 24 hours, one before that no more."""
    webhook.old_secret = webhook.secret
    webhook.old_secret_until = work.now + timedelta(hours=limits.WEBHOOK_OLD_SECRET_HOURS)
    webhook.secret = signing.new_secret()
    _audit(work, webhook, actor, "webhook.secret_rotated")


def deliveries(work: Work, webhook: Webhook, *, after: str | None, limit: int) -> tuple[list[Delivery], bool]:
    """Up to ``limit`` of a webhook's deliveries, newest first, after the given event; and whether there are more.

    Raises:
        NotFound: the cursor is no event of this webhook.
    """
    rows = select(Delivery).where(Delivery.webhook_id == webhook.id)
    if after is not None:
        cursor = work.session.get(Delivery, (webhook.id, after))
        if cursor is None:
            raise no_delivery(after)
        rows = rows.where(Delivery.sequence < cursor.sequence)
    found = list(work.session.scalars(rows.order_by(Delivery.sequence.desc()).limit(limit + 1)))
    return found[:limit], len(found) > limit


def webhook_object(webhook: Webhook, *, secret: bool = False) -> dict[str, Any]:
    """A webhook as the API shows it; with its secret only where it was made just now."""
    shown = {
        "id": webhook.id,
        "object": "gridline.webhook",
        "created_at": unix(webhook.created_at),
        "url": webhook.url,
        "events": webhook.events,
        "disabled": webhook.disabled_at is not None,
        "disabled_at": unix(webhook.disabled_at),
        "disabled_reason": webhook.disabled_reason,
        "failing_since": unix(webhook.failing_since),
        "old_secret_until": unix(webhook.old_secret_until),
    }
    return shown | {"secret": webhook.secret} if secret else shown


def delivery_object(one: Delivery) -> dict[str, Any]:
    """A delivery as the API shows it; its id is the event's, which receivers get as ``webhook-id``."""
    state = "delivered" if one.delivered_at else "given_up" if one.given_up_at else "pending"
    return {
        "id": one.event_id,
        "object": "gridline.webhook.delivery",
        "created_at": unix(one.created_at),
        "type": one.type,
        "data": {"id": one.subject_id},
        "state": state,
        "attempts": one.attempts,
        "last_attempt_at": unix(one.last_attempt_at),
        "last_status": one.last_status,
        "last_error": one.last_error,
        "next_attempt_at": unix(one.due_at),
        "delivered_at": unix(one.delivered_at),
    }


def _audit(work: Work, webhook: Webhook, actor: str, action: str, **more: str) -> None:
    # Without the URL: its path or query may be a secret of the customer's.
    details = {"webhook_id": webhook.id, **more}
    audit.record(work, account_id=webhook.account_id, actor=actor, action=action, details=details)
