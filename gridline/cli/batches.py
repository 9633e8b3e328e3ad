"""`gridline batches`: which there are, and how one is doing."""

import click

from gridline.cli.connection import with_client
from gridline.client import Batch, Client
from gridline.money import credits_text


@click.group()
def batches() -> None:
    """List batches, show one."""


@batches.command("list")
@click.option("--limit", default=20, show_default=True, help="At most this many, newest first.")
@with_client
def list_batches(client: Client, limit: int) -> None:
    """List the newest batches, one a line."""
    for one in client.batches(limit=limit).data:
        click.echo(f"{one.id}\t{one.status}\t{_progress(one)}\t{one.created_at:%Y-%m-%d %H:%M:%S} UTC")


@batches.command()
@click.argument("batch_id")
@with_client
def show(client: Client, batch_id: str) -> None:
    """Show one batch: status, progress, why it waits, what it costs."""
    one = client.batch(batch_id)
    rows = [
        ("id", one.id),
        ("status", one.status),
        ("model", one.model),
        ("lines", _progress(one)),
        ("waits", one.wait.reason if one.wait else None),
        ("next step", one.wait.next_step if one.wait else None),
        ("held", None if one.hold_nanos is None else credits_text(one.hold_nanos)),
        ("cost", None if one.cost_nanos is None else credits_text(one.cost_nanos)),
        ("output file", one.output_file_id),
        ("error file", one.error_file_id),
    ]
    for name, value in rows:
        if value is not None:
            click.echo(f"{name}\t{value}")
    for error in one.errors:
        where = "" if error.line is None else f"line {error.line}: "
        click.echo(f"error\t{where}{error.message}")


def _progress(batch: Batch) -> str:
    counts = batch.counts
    failed = f", {counts.failed} failed" if counts.failed else ""
    return f"{counts.completed} of {counts.total} completed{failed}"
