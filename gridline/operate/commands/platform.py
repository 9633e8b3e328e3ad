"""`gridline keeper`, `migrate`, `books`: the control loop, the schema, the proof of the books."""

import runpy

import click

from gridline.operate import migrate as migrating
from gridline.proof import platform


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
@click.option(
    "--files", is_flag=True, help="Compute every charge again from its output file, and look at every file."
)
def books(*, files: bool) -> None:
    """Prove that the books hold, and batches, files and leases with them.

    Exit status 1 and a sentence for each promise that does not.
    """
    read = platform.prove_with_files() if files else None
    broken = platform.prove() if read is None else read.broken
    for one in broken:
        click.echo(one, err=True)
    if broken:
        raise click.ClickException(f"{len(broken)} promises do not hold.")
    click.echo("The books hold.")
    if read is not None:
        click.echo(f"The files of {read.batches} batches bear out their charges.")
