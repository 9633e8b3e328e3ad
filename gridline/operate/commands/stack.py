"""`gridline up`, `down`, `status`: the stack on this machine."""

import os
import signal
import time

import click

from gridline.operate import secrets
from gridline.operate.secrets import AIRFLOW_ADMIN_PASSWORD, AIRFLOW_ADMIN_USER
from gridline.operate.stack import readiness, running
from gridline.operate.stack.places import Places
from gridline.operate.stack.programs import INITIALISING, Program, programs
from gridline.profiles.profile import current
from gridline.settings import ROOT, Settings, settings


def addresses(config: Settings) -> list[tuple[str, str]]:
    """What a person opens, and how to get in."""
    return [
        ("API", f"{config.public_api_url}{current().base_paths[0]}"),
        ("dashboard", f"{config.public_dashboard_url} (sign in with a token)"),
        (
            "Airflow",
            f"{config.public_airflow_url} (user {AIRFLOW_ADMIN_USER}, password: cat {config.secrets_dir / AIRFLOW_ADMIN_PASSWORD})",
        ),
        ("logs", str(Places(config).logs)),
    ]


class Interrupted(Exception):
    """Raised in the main thread by INT and TERM."""


def interrupt_on_signals() -> None:
    """Have INT and TERM end what runs by an exception, so that the stack is stopped on the way out."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)


def ignore_signals() -> None:
    """From here on stopping goes on to its end, however often Ctrl-C is pressed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@click.command()
@click.option("--foreground", is_flag=True, help="Stay until Ctrl-C or SIGTERM, then stop everything.")
def up(*, foreground: bool) -> None:
    """Start the stack and wait until every part answers."""
    config = settings()
    if running.running_pid(config) is not None:
        click.echo("The stack runs already.")
        foreground = False
    if foreground:
        interrupt_on_signals()
    begin = time.monotonic()
    try:
        running.start(config, tied=foreground)
        running.wait_until_ready(config, click.echo)
        click.echo(f"Ready after {time.monotonic() - begin:.0f} s")
        for name, value in addresses(config):
            click.echo(f"  {name:<10} {value}")
        while foreground and running.running_pid(config) is not None:
            time.sleep(1)
    except Interrupted:
        click.echo("Stopping …")
    finally:
        if foreground:
            ignore_signals()
            running.stop(config)


@click.command()
@click.argument("part")
def run(part: str) -> None:
    """Become one part of the stack, for a container or a unit of your own.

    PART is a name that `gridline status` shows. `init` makes databases, roles, schema and secrets, then ends: it comes
    first, and again after each upgrade.
    """
    config = settings()
    program = _known(config, part)
    Places(config).make()
    if part == INITIALISING:
        secrets.make(config)
    os.chdir(ROOT)
    os.execve(program.argv[0], program.argv, program.environment())


def _known(config: Settings, part: str) -> Program:
    """The program of that name.

    Raises:
        click.BadParameter: the stack has none, or it does not run here.
    """
    here = programs(config)
    if part not in here:
        raise click.BadParameter(f"the stack here has {', '.join(here)}.", param_hint="PART")
    return here[part]


@click.command()
def down() -> None:
    """Stop the stack and wait until nothing is left."""
    begin = time.monotonic()
    if running.stop(settings()):
        click.echo(f"Stopped after {time.monotonic() - begin:.0f} s")
    else:
        click.echo("The stack does not run.")


@click.command()
@click.argument("part", required=False)
def status(part: str | None) -> None:
    """Show each part, and whether it answers; exit status 1 when one does not.

    With a PART only that one is asked, also where `gridline run` started it.
    """
    config = settings()
    if part is not None:
        _known(config, part)
    else:
        running.require_running(config)
        for name, state in readiness.program_states(config).items():
            click.echo(f"{name}\t{state}")
    missing = 0
    for check in readiness.checks(config, of=[part] if part else None):
        what = check.missing()
        missing += what is not None
        click.echo(f"{check.name}\t{what or 'ready'}")
    if part is None:
        for name, value in addresses(config):
            click.echo(f"{name}\t{value}")
    if missing:
        raise SystemExit(1)
