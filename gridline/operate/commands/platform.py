"""`gridline keeper`, `migrate`, `books`: the control loop, the schema, the proof of the books."""

import runpy

import click

from gridline.db.work import unit_of_work
from gridline.ledger import proving
from gridline.operate import migrate as migrating


@click.command()
def keeper() -> None:
    """Run the control loop in the foreground; a second one waits as standby."""
    runpy.run_module("gridline.keeper", run_name="__main__")


@click.command()
def migrate() -> None:
    """Bring the domain database to the newest schema and seed the pools."""
    migrating.main()
    click.echo("The schema is the newest one.")


@click.command()
def books() -> None:
    """Prove that the books hold; exit status 1 and a sentence for each promise that does not."""
    with unit_of_work() as work:
        broken = proving.prove(work)
    for one in broken:
        click.echo(one, err=True)
    if broken:
        raise click.ClickException(f"{len(broken)} promises of the books do not hold.")
    click.echo("The books hold.")
