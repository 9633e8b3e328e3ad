"""`gridline ops usage`: GPU time against revenue, by day, model, account or batch."""

from datetime import UTC, datetime
from decimal import Decimal

import click

from gridline.capacity import gpu_revenue
from gridline.capacity.gpu_revenue import Used
from gridline.clock import Days
from gridline.db.work import unit_of_work
from gridline.money import credits_text

FIGURES = (
    "batches", "gpu seconds", "lines", "input tokens", "output tokens", "charged", "refunded", "credits a gpu hour",
)  # fmt: skip
DEFAULT = ("day", "model", "account")
ISO_DAY = click.DateTime(formats=["%Y-%m-%d"])


@click.command()
@click.option("--from", "first", type=ISO_DAY, metavar="DAY", help="The first UTC day, as 2026-01-31; default: the 1st of its month.")  # fmt: skip
@click.option("--to", "last", type=ISO_DAY, metavar="DAY", help="The last UTC day, included; default: today.")
@click.option(
    "--by", "by", multiple=True, type=click.Choice(list(gpu_revenue.COLUMNS)), default=DEFAULT, show_default=True,
    help="What a row is of; may be repeated.",
)  # fmt: skip
def usage(first: datetime | None, last: datetime | None, by: tuple[str, ...]) -> None:
    """Show what batches took of GPUs and brought in: one row a day, model and account, separated by tabs, and a total.

    A batch counts on the day of its end, with the time of all its leases: those of attempts that failed too, which
    nobody pays for. Credits a GPU hour are what was charged less what was refunded.
    """
    with unit_of_work() as work:
        to = last.date() if last else work.now.astimezone(UTC).date()
        days = Days(first.date() if first else to.replace(day=1), to)
        if days.first > days.last:
            raise click.UsageError(f"--from is after --to: {days.first} and {days.last}.")
        rows = gpu_revenue.used(work, days, by)
    click.echo("\t".join((*by, *FIGURES)))
    for row in rows:
        click.echo("\t".join((*row.of, *_figures(row))))
    click.echo("\t".join(("total", *("" for _ in by[1:]), *_figures(gpu_revenue.total(rows)))))


def _figures(row: Used) -> tuple[str, ...]:
    hourly = row.credits_per_gpu_hour
    whole = (row.lines, row.input_tokens, row.output_tokens)
    return (
        str(row.batches),
        _decimal(row.gpu_seconds, "0.1"),
        *map(str, whole),
        credits_text(row.charged_nanos),
        credits_text(row.refunded_nanos),
        "" if hourly is None else _decimal(hourly, "0.000001"),
    )


def _decimal(number: Decimal, step: str) -> str:
    return f"{number.quantize(Decimal(step)):f}"
