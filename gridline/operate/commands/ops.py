"""`gridline ops`: accounts, tokens, credits, limits, messages and webhooks, by an operator on the host; every change is audited."""

import secrets

import click

from gridline import ids
from gridline.customers import accounts as opening
from gridline.customers import passwords, spending, tokens, users
from gridline.db.work import unit_of_work
from gridline.ledger import reading
from gridline.money import credits_nanos, credits_text
from gridline.operate import accounts, crediting
from gridline.operate.commands import gpu_use, holds, messages, retention, webhooks

PASSWORD_BYTES = 18
"""Of chance in a new password: 24 characters."""


class Credits(click.ParamType[int]):
    """An exact amount of credits, as nano-credits."""

    name = "credits"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The amount that the text means, or a usage error."""
        try:
            return credits_nanos(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.group()
def ops() -> None:
    """Accounts, tokens, credits, limits, messages and webhooks."""


for command in (*holds.COMMANDS, gpu_use.usage, messages.messages, retention.retention, *webhooks.COMMANDS):
    ops.add_command(command)


@ops.command()
@click.argument("name")
def account(name: str) -> None:
    """Open the account NAME unless it is there, and show it."""
    with unit_of_work() as work:
        found = opening.find(work, name) or opening.open_account(work, name, actor=accounts.operator())
        balance = reading.balance(work, found.id)
        click.echo(f"account\t{found.id}")
        click.echo(f"open batches\t{found.open_batches} of {found.open_batches_max}")
        click.echo(f"leases\tat most {found.leases_max}")
        click.echo(f"requests a minute\t{found.requests_per_minute_max}")
        today = spending.today(work, found)
        click.echo(
            f"credits a day\t{credits_text(today.used_nanos)} of {credits_text(today.limit_nanos)} used"
        )
        month = spending.this_month(work, found)
        if month is not None:
            click.echo(
                f"budget\t{credits_text(month.used_nanos)} of {credits_text(month.limit_nanos)} used this month"
            )
        click.echo(f"available\t{credits_text(balance.available_nanos)}")
        click.echo(f"held\t{credits_text(balance.held_nanos)}")


@ops.command()
@click.argument("account")
@click.option("--name", default="operator", show_default=True, help="What the token is for.")
@click.option("--scopes", default=",".join(tokens.SCOPES), show_default=True, help="Separated by commas.")
def token(account: str, name: str, scopes: str) -> None:
    """Make a token for ACCOUNT (an id or a name). It is printed once and cannot be shown again."""
    with unit_of_work() as work:
        found = accounts.by_name_or_id(work, account)
        wanted = [one.strip() for one in scopes.split(",") if one.strip()]
        _, text = tokens.issue(work, found.id, name, scopes=wanted, actor=accounts.operator())
    click.echo(text)


@ops.command()
@click.argument("email")
def password(email: str) -> None:
    """Give the user EMAIL a new password, printed once, and end all sessions. Their tokens go on."""
    made = secrets.token_urlsafe(PASSWORD_BYTES)
    made_hash = passwords.hashed(made)
    with unit_of_work() as work:
        users.reset(work, users.normal_email(email), made_hash, actor=accounts.operator())
    click.echo(made)


@ops.command()
@click.argument("account")
@click.argument("amount", type=Credits())
@click.option("--why", required=True, help="The reason, kept with the entry.")
@click.option("--key", help="The same key grants once, however often it is said.")
def grant(account: str, amount: int, why: str, key: str | None) -> None:
    """Give ACCOUNT an AMOUNT of credits."""
    with unit_of_work() as work:
        found = accounts.by_name_or_id(work, account)
        actor = accounts.operator()
        crediting.grant(work, found.id, amount, actor=actor, why=why, key=key or ids.new("transaction"))
        balance = reading.balance(work, found.id)
    click.echo(f"available\t{credits_text(balance.available_nanos)}")


@ops.command(context_settings={"ignore_unknown_options": True})
@click.argument("account")
@click.argument("amount", type=Credits())
@click.option("--why", required=True, help="The reason, kept with the entry.")
@click.option("--key", help="The same key adjusts once, however often it is said.")
def adjust(account: str, amount: int, why: str, key: str | None) -> None:
    """Add an AMOUNT to the available credits of ACCOUNT; one that begins with - is taken, if it is there."""
    with unit_of_work() as work:
        found = accounts.by_name_or_id(work, account)
        actor = accounts.operator()
        crediting.adjust(work, found.id, amount, actor=actor, why=why, key=key or ids.new("transaction"))
        balance = reading.balance(work, found.id)
    click.echo(f"available\t{credits_text(balance.available_nanos)}")


@ops.command()
@click.argument("batch_id")
@click.argument("amount", type=Credits())
@click.option("--why", required=True, help="The reason, kept with the entry.")
@click.option("--key", help="The same key refunds once, however often it is said.")
def refund(batch_id: str, amount: int, why: str, key: str | None) -> None:
    """Give an AMOUNT of the charge of BATCH_ID back to its account; all refunds together are at most the charge."""
    with unit_of_work() as work:
        actor = accounts.operator()
        crediting.refund(work, batch_id, amount, actor=actor, why=why, key=key or ids.new("transaction"))
        refunded = reading.refunded(work, batch_id)
    click.echo(f"refunded\t{credits_text(refunded)}")


@ops.command()
@click.argument("account")
@click.option("--open-batches", type=int, help="Open batches at once.")
@click.option("--gpus", "--leases", "leases", type=int, help="GPUs at once.")
@click.option(
    "--credits-per-day", "--daily-credits", "daily_credits", type=Credits(), help="Credits held in a UTC day."
)
@click.option("--requests-per-minute", type=int, help="Requests to the API in a minute.")
@click.option("--why", required=True, help="The reason, kept in the audit.")
def limit(account: str, why: str, **given: int | None) -> None:
    """Change the limits of ACCOUNT."""
    with unit_of_work() as work:
        found = accounts.by_name_or_id(work, account)
        limits = accounts.Limits(
            open_batches=given["open_batches"],
            leases=given["leases"],
            daily_credits_nanos=given["daily_credits"],
            requests_per_minute=given["requests_per_minute"],
        )
        changed = accounts.set_limits(work, found.id, limits, actor=accounts.operator(), why=why)
    for name, value in changed.items():
        click.echo(f"{name}\t{value}")
