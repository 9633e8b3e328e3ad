"""`gridline ops messages`: what customers wrote, in a terminal that they cannot move."""

import click

from gridline.cli.output import printable
from gridline.db.work import unit_of_work
from gridline.notices import messages as written

HEADS = ("UTC", "message", "account", "batch", "text")


@click.command()
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="At most this many."
)
def messages(limit: int) -> None:
    """Show the newest messages of customers, newest first, one a row, separated by tabs."""
    with unit_of_work() as work:
        found = written.latest(work, limit=limit)
    click.echo("\t".join(HEADS))
    for one in found:
        row = (
            f"{one.created_at:%Y-%m-%d %H:%M}",
            one.id,
            f"{one.account_name} ({one.account_id})",
            one.batch_id or "",
            one.text,
        )
        # One message stays one row: its line ends and tabs become blanks, what else moves a cursor is replaced.
        click.echo("\t".join(printable(" ".join(cell.split())) for cell in row))
