"""`gridline ops hold`, `release`, `platform-limit`, `gpu-time`: what an operator lets start, and for how long."""

from collections.abc import Callable

import click

from gridline.capacity import budget, gpu_time, operator_hold
from gridline.db.work import unit_of_work
from gridline.money import credits_nanos, credits_text
from gridline.operate import accounts

NONE = "none"


class OrNone(click.ParamType[int | str]):
    """A value, or the word none, which lifts the limit."""

    def __init__(self, name: str, read: Callable[[str], int]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """The value that the text means, or none; else a usage error."""
        try:
            return NONE if value == NONE else self._read(str(value))
        except ValueError as error:
            self.fail(f"{error}, or none", param, ctx)


@click.command()
@click.argument("batch")
@click.option("--note", required=True, help="Why, in a sentence: the batch's customer reads it.")
def hold(batch: str, note: str) -> None:
    """Give BATCH no new GPU until it is released; jobs that run go on, and so do its time limits."""
    with unit_of_work() as work:
        new = operator_hold.hold(work, batch, note=note, actor=accounts.operator())
    click.echo("held" if new else "held already; nothing has changed, the note neither")


@click.command()
@click.argument("batch")
def release(batch: str) -> None:
    """Let BATCH go on."""
    with unit_of_work() as work:
        was_held = operator_hold.release(work, batch, actor=accounts.operator())
    click.echo("released" if was_held else "not held; nothing has changed")


@click.command("platform-limit")
@click.option(
    "--credits-per-day", type=OrNone("credits", credits_nanos), help="Credits' worth of batches, or none."
)
@click.option("--why", help="The reason, kept in the audit; needed for a change.")
def platform_limit(credits_per_day: int | str | None, why: str | None) -> None:
    """Show or set the most that may start in a UTC day, over all accounts.

    A batch counts with its hold, less what came back of it, on the day of its first GPU lease. Beyond the limit
    nothing starts until 00:00 UTC; what has started goes on.
    """
    if credits_per_day is not None and not why:
        raise click.UsageError("Say --why with a new limit.")
    with unit_of_work() as work:
        if isinstance(credits_per_day, int):
            budget.set_limit(work, credits_per_day, actor=accounts.operator(), why=str(why))
        elif credits_per_day is not None:
            budget.set_limit(work, None, actor=accounts.operator(), why=str(why))
        day = budget.today(work)
    click.echo(f"credits a day\t{NONE if day.limit_nanos is None else credits_text(day.limit_nanos)}")
    click.echo(f"used today\t{credits_text(day.used_nanos)}")


@click.command("gpu-time")
@click.argument("account")
@click.option(
    "--gpu-seconds-per-batch",
    type=OrNone("seconds", int),
    required=True,
    help="Seconds of one GPU that each batch may use, or none.",
)
@click.option("--why", required=True, help="The reason, kept in the audit.")
def gpu_seconds(account: str, gpu_seconds_per_batch: int | str, why: str) -> None:
    """Bound the GPU time of each batch of ACCOUNT: one that has used it ends as at its deadline."""
    seconds = gpu_seconds_per_batch if isinstance(gpu_seconds_per_batch, int) else None
    with unit_of_work() as work:
        found = accounts.by_name_or_id(work, account)
        gpu_time.set_budget(work, found.id, seconds, actor=accounts.operator(), why=why)
    click.echo(f"GPU seconds a batch\t{NONE if seconds is None else seconds}")


COMMANDS = (hold, release, platform_limit, gpu_seconds)
