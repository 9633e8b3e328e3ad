"""`gridline balance`, `usage` and `statement`: what the account has, what it used, and where every credit went."""

from pathlib import Path

import click

from gridline.cli.connection import days as of_days
from gridline.cli.connection import with_client
from gridline.cli.output import Output
from gridline.cli.saving import into, save
from gridline.client import Client
from gridline.client.objects import instant
from gridline.money import credits_text


@click.command()
@with_client
def balance(client: Client, out: Output) -> None:
    """Show available and held credits."""
    account = client.account()
    shown = {
        "available": credits_text(account.available_nanos),
        "held": credits_text(account.held_nanos),
    }
    out.one(shown, [(name, f"{amount} credits") for name, amount in shown.items()])


@click.command()
@of_days
@with_client
def usage(client: Client, out: Output, days: dict[str, str]) -> None:
    """Show what was delivered and charged, by UTC day and model."""
    found = client.usage(days)
    heads = ("day", "model", "batches", "lines", "input tokens", "output tokens", "credits")
    keys = ("day", "model", "batches", "lines", "input_tokens", "output_tokens", "amount")
    out.many(found, heads, [[one[key] for key in keys] for one in found])


@click.command()
@of_days
@click.option("--csv", "as_csv", is_flag=True, help="As CSV, for a spreadsheet; any number of entries.")
@into("Into this file; with --csv.")
@with_client
def statement(
    client: Client, out: Output, days: dict[str, str], *, as_csv: bool, output: Path | None
) -> None:
    """Show every entry of some UTC days between their opening and closing balance."""
    if output is not None and not as_csv:
        raise click.UsageError("--output goes with --csv.")
    if as_csv:
        with client.statement_sheet(days) as sheet:
            save(sheet, output)
        return
    found = client.statement(days)
    if out.as_json:
        out.line(found)
        return
    opening, closing = found["opening"], found["closing"]
    rows = [
        (
            f"{instant(one['created_at']):%Y-%m-%d %H:%M}",
            one["kind"],
            one["available_change"],
            one["held_change"],
            one["batch_id"] or "",
        )
        for one in found["data"]
    ]
    first = (found["from"], "opening", opening["available"], opening["held"], "")
    last = (found["to"], "closing", closing["available"], closing["held"], "")
    out.many([], ("UTC", "entry", "available", "held", "batch"), [first, *rows, last])
