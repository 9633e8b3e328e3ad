"""Webhooks: addresses of a customer that hear of ended batches. What OpenAI has on its own pages only."""

from typing import Any

from flask import Blueprint

from api import auth, bodies, paging, queries, rates
from api.reference.operations import operation
from gridline import ids, limits
from gridline.db.work import reading, unit_of_work
from gridline.notices import addresses, outbox, webhooks
from gridline.notices.requests import parse_create, parse_update
from gridline.settings import settings

blueprint = queries.strict(auth.guard(Blueprint("webhooks", __name__)))


@blueprint.post("/webhooks")
@operation(
    "Webhooks",
    "createWebhook",
    "Create a webhook",
    body="WebhookCreate",
    returns="WebhookWithSecret",
    refuses=("string_above_max_length", "empty_array", "limit_exceeded"),
)
def create_webhook() -> dict[str, Any]:
    """Have an address told of ended batches. The answer holds the secret that signs, which is never shown again."""
    who = auth.caller()
    wanted = parse_create(bodies.json_body())
    _check(wanted.url)
    with unit_of_work() as work:
        made = webhooks.create(work, who.account_id, wanted, actor=who.actor)
        return webhooks.webhook_object(made, secret=True)


@blueprint.get("/webhooks")
@operation("Webhooks", "listWebhooks", "List webhooks", returns="WebhookList")
def list_webhooks() -> dict[str, Any]:
    """All of the account's webhooks, newest first."""
    with reading() as work:
        found = webhooks.every(work, auth.caller().account_id)
    return paging.page_object([webhooks.webhook_object(one) for one in found], has_more=False)


@blueprint.get("/webhooks/<webhook_id>")
@operation("Webhooks", "retrieveWebhook", "Look at a webhook", returns="Webhook", refuses=("not_found",))
def show_webhook(webhook_id: str) -> dict[str, Any]:
    """One webhook."""
    checked_id(webhook_id)
    with reading() as work:
        return webhooks.webhook_object(webhooks.get(work, auth.caller().account_id, webhook_id))


@blueprint.post("/webhooks/<webhook_id>")
@operation(
    "Webhooks",
    "updateWebhook",
    "Change a webhook",
    body="WebhookUpdate",
    returns="Webhook",
    refuses=("string_above_max_length", "empty_array", "not_found"),
)
def update_webhook(webhook_id: str) -> dict[str, Any]:
    """Change address, events, or whether it is disabled. Enabled again, it gets what it is still owed."""
    checked_id(webhook_id)
    who = auth.caller()
    with reading() as work:
        webhooks.get(work, who.account_id, webhook_id)
    wanted = parse_update(bodies.json_body())
    _check(wanted.url)
    with unit_of_work() as work:
        found = webhooks.get(work, who.account_id, webhook_id, lock=True)
        webhooks.update(work, found, wanted, actor=who.actor)
        return webhooks.webhook_object(found)


@blueprint.delete("/webhooks/<webhook_id>")
@operation("Webhooks", "deleteWebhook", "Delete a webhook", returns="DeletedWebhook", refuses=("not_found",))
def delete_webhook(webhook_id: str) -> dict[str, Any]:
    """Delete a webhook with its deliveries."""
    checked_id(webhook_id)
    who = auth.caller()
    with unit_of_work() as work:
        found = webhooks.get(work, who.account_id, webhook_id, lock=True)
        webhooks.delete(work, found, actor=who.actor)
    return {"id": webhook_id, "object": "gridline.webhook", "deleted": True}


@blueprint.post("/webhooks/<webhook_id>/rotate")
@operation(
    "Webhooks",
    "rotateWebhookSecret",
    "Rotate a webhook's secret",
    returns="WebhookWithSecret",
    refuses=("not_found",),
)
def rotate_secret(webhook_id: str) -> dict[str, Any]:
    """Make a new secret, shown once. For 24 hours the one before signs beside it."""
    checked_id(webhook_id)
    who = auth.caller()
    with unit_of_work() as work:
        found = webhooks.get(work, who.account_id, webhook_id, lock=True)
        webhooks.rotate(work, found, actor=who.actor)
        return webhooks.webhook_object(found, secret=True)


@blueprint.post("/webhooks/<webhook_id>/test")
@operation(
    "Webhooks",
    "testWebhook",
    "Send a test event",
    returns="WebhookDelivery",
    refuses=("not_found", "conflict"),
)
def send_test(webhook_id: str) -> dict[str, Any]:
    """Send a `webhook.test` event within seconds; the deliveries say what came of it."""
    checked_id(webhook_id)
    who = auth.caller()
    with unit_of_work() as work:
        found = webhooks.get(work, who.account_id, webhook_id, lock=True)
        webhooks.check_enabled(found)
        rates.admit_webhook_test(who.account_id)
        return webhooks.delivery_object(outbox.owe_test(work, found))


@blueprint.get("/webhooks/<webhook_id>/deliveries")
@operation(
    "Webhooks",
    "listWebhookDeliveries",
    "List a webhook's deliveries",
    parameters=("deliveries_after", "deliveries_limit"),
    returns="WebhookDeliveryList",
    refuses=("not_found",),
)
def list_deliveries(webhook_id: str) -> dict[str, Any]:
    """One page of what a webhook was or will be sent, newest first, for 30 days."""
    checked_id(webhook_id)
    limit = paging.query_limit(default=limits.DELIVERIES_PAGE_DEFAULT, most=limits.DELIVERIES_PAGE_MAX)
    after = paging.query("after")
    if after is not None and not ids.is_id("event", after):
        raise webhooks.no_delivery(after)
    with reading() as work:
        found = webhooks.get(work, auth.caller().account_id, webhook_id)
        page, has_more = webhooks.deliveries(work, found, after=after, limit=limit)
    return paging.page_object([webhooks.delivery_object(one) for one in page], has_more=has_more)


def checked_id(webhook_id: str) -> str:
    """The id, if it has an id's shape.

    Raises:
        NotFound: the very answer that a missing webhook gets.
    """
    if not ids.is_id("webhook", webhook_id):
        raise webhooks.missing(webhook_id)
    return webhook_id


def _check(url: str | None) -> None:
    """Look the host up before any transaction is open: it may take seconds."""
    if url is not None:
        addresses.check(url, networks=settings().webhook_networks)
