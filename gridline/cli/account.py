"""`gridline balance`: what the account can spend and what is set aside."""

import click

from gridline.cli.connection import with_client
from gridline.client import Client
from gridline.money import credits_text


@click.command()
@with_client
def balance(client: Client) -> None:
    """Show available and held credits."""
    account = client.account()
    click.echo(f"available\t{credits_text(account.available_nanos)}")
    click.echo(f"held\t{credits_text(account.held_nanos)}")
