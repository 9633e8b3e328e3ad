"""`gridline open` and `gridline completion`: from the shell to a batch's page, and names that complete themselves."""

import sys

import click
from click.shell_completion import get_completion_class

from gridline.settings import settings

VARIABLE = "_GRIDLINE_COMPLETE"


@click.command("open")
@click.argument("batch_id")
def open_page(batch_id: str) -> None:
    """Open a batch's page in the browser, and say its address."""
    address = settings().batch_page(batch_id)
    click.echo(address)
    if sys.stdout.isatty():
        click.launch(address)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes gridline's commands in a shell.

    For bash: eval "$(gridline completion bash)".
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    click.echo(made(context.find_root().command, {}, "gridline", VARIABLE).source())
