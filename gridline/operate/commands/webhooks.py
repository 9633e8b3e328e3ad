"""`gridline ops webhooks` and `disable-webhook`: whose receivers fail, and an end to asking them."""

import click

from gridline.cli.output import printable
from gridline.db.work import unit_of_work
from gridline.notices import webhooks as notices
from gridline.operate import accounts
from gridline.operate.desk import webhooks as desk

HEADS = ("webhook", "account", "host", "failing since (UTC)", "open deliveries", "state")


@click.command()
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="At most this many."
)
def webhooks(limit: int) -> None:
    """Show customers' webhooks, those that have failed the longest first, one a row, separated by tabs."""
    with unit_of_work() as work:
        found = desk.page(work, limit=limit)
    click.echo("\t".join(HEADS))
    for one in found:
        row = (
            one.id,
            f"{one.account} ({one.account_id})",
            one.host,
            "" if one.failing_since is None else f"{one.failing_since:%Y-%m-%d %H:%M}",
            str(one.open_deliveries),
            "enabled" if one.disabled_reason is None else f"disabled ({one.disabled_reason})",
        )
        click.echo("\t".join(printable(cell) for cell in row))


@click.command("disable-webhook")
@click.argument("webhook_id")
@click.option("--why", required=True, help="Why, in a sentence: the webhook's customer reads it.")
def disable_webhook(webhook_id: str, why: str) -> None:
    """Send WEBHOOK_ID nothing until its customer enables it again; what it is owed by then goes out at once."""
    with unit_of_work() as work:
        new = notices.disable(work, webhook_id, why=why, actor=accounts.operator())
    click.echo("disabled" if new else "disabled already; nothing has changed, the reason neither")


COMMANDS = (webhooks, disable_webhook)
"""The operator's sub-commands of `gridline`, loaded by name."""
