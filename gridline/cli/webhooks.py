"""`gridline webhooks`: addresses of yours that hear of ended batches."""

from typing import Any

import click

from gridline.cli.connection import with_client
from gridline.cli.output import Output, say
from gridline.client import Client, Json
from gridline.client.objects import instant

EVENTS = ("batch.completed", "batch.failed", "batch.expired", "batch.cancelled")


@click.group()
def webhooks() -> None:
    """Have an address told when a batch ends, instead of polling."""


@webhooks.command("list")
@with_client
def list_webhooks(client: Client, out: Output) -> None:
    """List your webhooks."""
    found = client.webhooks.every()
    rows = [
        (one["id"], one["url"], ", ".join(one["events"]), state(one), _when(one["created_at"]))
        for one in found
    ]
    out.many(found, ("id", "url", "events", "state", "UTC"), rows)


@webhooks.command()
@click.argument("address", metavar="URL")
@click.option(
    "--event",
    "events",
    type=click.Choice(EVENTS),
    multiple=True,
    help="May be repeated; default: all of them.",
)
@with_client
def create(client: Client, out: Output, address: str, events: tuple[str, ...]) -> None:
    """Have URL told of ended batches; its secret is shown once."""
    _with_secret(out, client.webhooks.create(address, events))


@webhooks.command()
@click.argument("webhook_id")
@with_client
def delete(client: Client, out: Output, webhook_id: str) -> None:
    """Delete a webhook with its deliveries."""
    gone = client.webhooks.delete(webhook_id)
    out.one(gone, [("deleted", gone["id"])])


@webhooks.command()
@click.argument("webhook_id")
@with_client
def test(client: Client, out: Output, webhook_id: str) -> None:
    """Send a test event; `gridline webhooks deliveries` says what came of it."""
    sent = client.webhooks.test(webhook_id)
    out.one(sent, [("event", sent["id"]), ("state", sent["state"])])


@webhooks.command()
@click.argument("webhook_id")
@with_client
def rotate(client: Client, out: Output, webhook_id: str) -> None:
    """Make a new secret, shown once; for 24 hours the old one signs, too."""
    _with_secret(out, client.webhooks.rotate(webhook_id))


@webhooks.command()
@click.argument("webhook_id")
@click.option("--limit", default=20, show_default=True, help="At most this many, newest first.")
@click.option("--after", help="Go on after this event.")
@with_client
def deliveries(client: Client, out: Output, webhook_id: str, **page: Any) -> None:
    """Show what a webhook was or will be sent."""
    found = client.webhooks.deliveries(webhook_id, **page)
    rows = [
        (
            one["id"],
            one["type"],
            one["data"]["id"],
            one["state"],
            one["attempts"],
            one["last_status"] or one["last_error"] or "",
            _when(one["last_attempt_at"]),
            _when(one["next_attempt_at"]),
        )
        for one in found.data
    ]
    heads = ("event", "type", "about", "state", "attempts", "last answer", "last attempt", "next attempt")
    out.many(found.data, heads, rows)
    if found.has_more:
        say(f"More: gridline webhooks deliveries {webhook_id} --after {found.data[-1]['id']}")


def state(webhook: Json) -> str:
    """In a word or two whether it gets events."""
    if webhook["disabled"]:
        return f"disabled ({webhook['disabled_reason']})"
    return "failing" if webhook["failing_since"] else "enabled"


def _with_secret(out: Output, webhook: Json) -> None:
    out.one(webhook, [(name, webhook[name]) for name in ("id", "url", "secret")])
    say("Keep the secret: it cannot be shown again.")


def _when(seconds: int | None) -> str:
    moment = instant(seconds)
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"
