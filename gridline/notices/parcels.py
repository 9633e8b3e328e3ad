"""Deliveries on their way: who sends one claims it first, and notes afterwards what came of it.

Both are short transactions of their own, with the sending between them and outside of both. Whoever dies in between
leaves a claim that lapses, and the delivery is sent again: at least once, never not at all.
"""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, func, or_, select, tuple_

from gridline import limits
from gridline.clock import unix
from gridline.db.work import Work
from gridline.notices import signing
from gridline.notices.outbox import event_object
from gridline.notices.tables import Delivery, Webhook
from gridline.notices.webhooks import FAILING

CLAIM_SECONDS = 60
AT_ONCE_PER_ACCOUNT = 4
"""So that one customer's slow receivers leave room for everybody else's."""
FORGET_ROWS_MAX = 5_000


@dataclass(frozen=True)
class Parcel:
    """One attempt at one delivery: where to, and what, signed for now."""

    webhook_id: str
    event_id: str
    attempt: int
    url: str
    body: bytes
    headers: dict[str, str]


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt: an HTTP status, or the reason why there is none. Nothing of the answer's body."""

    status: int | None = None
    error: str | None = None

    @property
    def arrived(self) -> bool:
        """Whether the receiver took it: any 2xx."""
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004 - HTTP's own


def claim(work: Work, *, most: int) -> list[Parcel]:
    """Up to ``most`` attempts that are due, nobody else's for a minute; at most four at once of one account."""
    free = or_(Delivery.claimed_until.is_(None), Delivery.claimed_until <= work.now)
    due = (Delivery.due_at <= work.now, free)
    turn = func.row_number().over(
        partition_by=Delivery.account_id, order_by=(Delivery.due_at, Delivery.sequence)
    )
    queued = (
        select(Delivery.webhook_id, Delivery.event_id, turn.label("turn"))
        .join(Webhook, Webhook.id == Delivery.webhook_id)
        .where(*due, Webhook.disabled_at.is_(None))
        .subquery()
    )
    flying = (
        select(Delivery.account_id, func.count().label("count"))
        .where(Delivery.due_at.is_not(None), Delivery.claimed_until > work.now)
        .group_by(Delivery.account_id)
        .subquery()
    )
    rows = (
        select(Delivery, Webhook)
        .join(queued, (queued.c.webhook_id == Delivery.webhook_id) & (queued.c.event_id == Delivery.event_id))
        .join(Webhook, Webhook.id == Delivery.webhook_id)
        .outerjoin(flying, flying.c.account_id == Delivery.account_id)
        .where(*due, queued.c.turn + func.coalesce(flying.c.count, 0) <= AT_ONCE_PER_ACCOUNT)
        .order_by(Delivery.due_at, Delivery.sequence)
        .limit(most)
        .with_for_update(of=Delivery, skip_locked=True)
        .execution_options(populate_existing=True)
    )
    return [_taken(work, delivery, webhook) for delivery, webhook in work.session.execute(rows)]


def _taken(work: Work, delivery: Delivery, webhook: Webhook) -> Parcel:
    delivery.attempts += 1
    delivery.claimed_until = work.now + timedelta(seconds=CLAIM_SECONDS)
    delivery.last_attempt_at = work.now
    shown = event_object(
        delivery.event_id, delivery.type, subject_id=delivery.subject_id, created_at=delivery.created_at
    )
    body = json.dumps(shown, separators=(",", ":")).encode()
    keys = [webhook.secret]
    if webhook.old_secret is not None and (webhook.old_secret_until or work.now) > work.now:
        keys.append(webhook.old_secret)
    return Parcel(
        webhook_id=webhook.id,
        event_id=delivery.event_id,
        attempt=delivery.attempts,
        url=webhook.url,
        body=body,
        headers=signing.headers(delivery.event_id, timestamp=unix(work.now), body=body, keys=keys),
    )


def note(work: Work, parcel: Parcel, outcome: Outcome) -> None:
    """Write down what came of an attempt: delivered, due again later, or given up after about three days.

    What is late (the webhook is gone, a later attempt is on its way, another arrived) changes nothing.
    """
    # The webhook before its delivery, as its deletion locks them.
    webhook = work.session.scalars(
        select(Webhook)
        .where(Webhook.id == parcel.webhook_id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).one_or_none()
    delivery = work.session.scalars(
        select(Delivery)
        .where(Delivery.webhook_id == parcel.webhook_id, Delivery.event_id == parcel.event_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one_or_none()
    if webhook is None or delivery is None or delivery.due_at is None:
        return
    if not outcome.arrived and delivery.attempts != parcel.attempt:
        return
    delivery.claimed_until = None
    delivery.last_status, delivery.last_error = outcome.status, outcome.error
    if outcome.arrived:
        delivery.due_at, delivery.delivered_at = None, work.now
        webhook.failing_since = None
        return
    webhook.failing_since = webhook.failing_since or work.now
    if parcel.attempt <= len(limits.WEBHOOK_RETRY_SECONDS):
        delivery.due_at = work.now + _pause(parcel.attempt)
        return
    delivery.due_at, delivery.given_up_at = None, work.now
    _disable_if_dead(webhook, work.now)


def _disable_if_dead(webhook: Webhook, now: datetime) -> None:
    """A webhook that lost an event and took nothing for two days is asked no more until its owner says so."""
    dead = timedelta(hours=limits.WEBHOOK_FAILING_HOURS_MAX)
    since = webhook.failing_since
    if webhook.disabled_at is None and since is not None and now - since >= dead:
        webhook.disabled_at, webhook.disabled_reason = now, FAILING


def _pause(attempt: int) -> timedelta:
    """How long to wait after this attempt (1 is the first), give or take a fifth so that many do not come together."""
    jitter = limits.WEBHOOK_RETRY_JITTER_PERCENT
    percent = 100 - jitter + secrets.randbelow(2 * jitter + 1)
    return timedelta(seconds=limits.WEBHOOK_RETRY_SECONDS[attempt - 1]) * percent / 100


def forget(work: Work) -> int:
    """Delete some of the deliveries that are older than 30 days, whatever became of them; how many. 0: none is left."""
    old = Delivery.created_at < work.now - timedelta(days=limits.WEBHOOK_KEEP_DAYS)
    key = tuple_(Delivery.webhook_id, Delivery.event_id)
    some = (
        select(Delivery.webhook_id, Delivery.event_id)
        .where(old)
        .order_by(Delivery.created_at)
        .limit(FORGET_ROWS_MAX)
    )
    return len(work.session.execute(delete(Delivery).where(key.in_(some)).returning(Delivery.event_id)).all())
