"""The `gridline` command: every sub-command by name, loaded when it is used, so that no customer pays for an operator's.

The operator's commands are named here and never imported: the customer's side knows the client only.
"""

from importlib import import_module

import click

from gridline import __version__
from gridline.client.errors import ClientError
from gridline.errors import GridlineError

CUSTOMER = {
    "setup": "gridline.cli.setup:setup",
    "files": "gridline.cli.files:files",
    "batches": "gridline.cli.batches:batches",
    "balance": "gridline.cli.account:balance",
    "usage": "gridline.cli.account:usage",
    "requests": "gridline.cli.account:requests",
    "statement": "gridline.cli.account:statement",
    "webhooks": "gridline.cli.webhooks:webhooks",
    "open": "gridline.cli.shell:open_page",
    "completion": "gridline.cli.shell:completion",
}
OPERATOR = {
    "up": "gridline.operate.commands.stack:up",
    "run": "gridline.operate.commands.stack:run",
    "down": "gridline.operate.commands.stack:down",
    "status": "gridline.operate.commands.stack:status",
    "keeper": "gridline.operate.commands.platform:keeper",
    "migrate": "gridline.operate.commands.platform:migrate",
    "books": "gridline.operate.commands.platform:books",
    "ops": "gridline.operate.commands.ops:ops",
    "models": "gridline.operate.commands.models:models",
    "adapters": "gridline.operate.commands.adapters:adapters",
}


class Lazy(click.Group):
    """A group whose commands are imported by name, and whose errors are sentences, never tracebacks."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click gives it
        """Names in the order of the help."""
        return [*CUSTOMER, *OPERATOR]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click
        """The command of that name, imported now."""
        place = (CUSTOMER | OPERATOR).get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        found: click.Command = getattr(import_module(module), name)
        return found

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an expected error is one line and exit status 1."""
        try:
            return super().invoke(ctx)
        except (GridlineError, ClientError) as error:
            raise click.ClickException(error.message) from error


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gridline")
def main() -> None:
    """Batches on your GPUs, in OpenAI's terms.

    The commands down to completion are for customers; the others are the operator's, on the host.
    """


if __name__ == "__main__":
    main()
