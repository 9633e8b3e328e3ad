"""`gridline balance`, `usage`, `requests` and `statement`: what the account has, what it used, and where every credit went."""

from pathlib import Path
from typing import Any

import click

from gridline.cli.connection import days as of_days
from gridline.cli.connection import with_client
from gridline.cli.output import Output, say
from gridline.cli.saving import into, save
from gridline.client import Client
from gridline.client.errors import ClientError
from gridline.client.objects import instant
from gridline.money import credits_text


@click.command()
@with_client
def balance(client: Client, out: Output) -> None:
    """Show available and held credits, and what is used of the month's budget if there is one."""
    account = client.account()
    shown = {
        "available": credits_text(account.available_nanos),
        "held": credits_text(account.held_nanos),
    }
    rows = [(name, f"{amount} credits") for name, amount in shown.items()]
    budget = account.limits.get("monthly_budget")
    if budget is None:
        out.one(shown, rows)
        return
    month = {"monthly_budget": {"limit": budget.limit, "current": budget.current}}
    out.one(shown | month, [*rows, ("this month", f"{budget.current} of {budget.limit} credits")])


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
@click.option("--batch", "batch_id", metavar="BATCH_ID", help="Of this batch, in input order.")
@click.option("--day", metavar="DAY", help="Of the batches that ended on this UTC day; default: today.")
@click.option("--limit", default=100, show_default=True, help="At most this many.")
@click.option("--after", help="Go on after this request.")
@with_client
def requests(client: Client, out: Output, **asked: Any) -> None:
    """Show what became of each line of ended batches, where the platform keeps a request log."""
    try:
        page = client.requests({name: str(value) for name, value in asked.items() if value is not None})
    except ClientError as error:
        if error.code != "unknown_url":
            raise
        raise click.ClickException("This platform keeps no request log.") from error
    heads = ("id", "custom_id", "model", "status", "error", "input", "output", "credits")
    keys = ("id", "custom_id", "model", "status_code", "code", "input_tokens", "output_tokens", "cost")
    out.many(page.data, heads, [["" if one[key] is None else one[key] for key in keys] for one in page.data])
    if page.has_more:
        of = [
            f"--{name} {asked[key]} " for name, key in (("batch", "batch_id"), ("day", "day")) if asked[key]
        ]
        say(f"More: gridline requests {''.join(of)}--after {page.data[-1]['id']}")


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
