"""`gridline ops retention`: how long an account's files are kept, in dialects that go by it."""

import click

from gridline import limits
from gridline.customers import audit
from gridline.db.work import unit_of_work
from gridline.operate import accounts


@click.command()
@click.argument("account")
@click.argument("days", type=click.IntRange(1, limits.RETENTION_DAYS_MAX))
@click.option("--why", required=True, help="The reason, kept in the audit.")
def retention(account: str, days: int, why: str) -> None:
    """Keep the files of ACCOUNT for DAYS from now on, where the platform's dialect goes by that.

    Files that are there keep the expiry that they have.
    """
    with unit_of_work() as work:
        found = accounts.by_name_or_id(work, account)
        found.retention_days = days
        details = {"days": days, "why": why}
        actor = accounts.operator()
        audit.record(work, account_id=found.id, actor=actor, action="account.retention", details=details)
    click.echo(f"retention\t{days} days")
