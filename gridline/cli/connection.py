"""Where the API is, with which token, and how the answer is shown: options that every customer's command shares."""

from functools import wraps
from typing import Any

import click

from gridline.cli import configuration
from gridline.cli.output import Output
from gridline.cli.saving import Command
from gridline.client import Client
from gridline.settings import settings


def with_client(command: Command) -> Command:
    """Give a command the client and its output as first arguments; OpenAI's own variables work as they are.

    What neither options nor variables say comes from the file of `gridline setup`.
    """

    @click.option(
        "--url",
        envvar="OPENAI_BASE_URL",
        help="The API's base URL; default: that of setup, or this machine's.",
    )
    @click.option(
        "--token", envvar="OPENAI_API_KEY", help="Your token (or OPENAI_API_KEY); default: that of setup."
    )
    @click.option("--json", "as_json", is_flag=True, help="JSON lines, as in a pipe, also on a terminal.")
    @wraps(command)
    def connected(*, url: str | None, token: str | None, as_json: bool, **given: Any) -> None:
        with Client(*_reached(url, token)) as client:
            command(client, Output(as_json=as_json), **given)

    return connected


def _reached(url: str | None, token: str | None) -> tuple[str, str]:
    """Base URL and token, from the file of setup where they were not given.

    Raises:
        click.UsageError: no token was given, and the file has none for that address.
    """
    held = None if token else configuration.load()
    token = token or (held.for_url(url) if held else None)
    if not token:
        raise click.UsageError(
            "No token: run 'gridline setup --apply', or give --token or OPENAI_API_KEY."
            + (f" The one in {configuration.path()} is of {held.base_url}." if held else "")
        )
    return url or (held.base_url if held else settings().public_api_url), token


def days(command: Command) -> Command:
    """Give a command the UTC days that it is asked about, as the API's parameters."""

    @click.option(
        "--from",
        "first",
        metavar="DAY",
        help="The first UTC day, as 2026-01-31; default: the 1st of its month.",
    )
    @click.option("--to", "last", metavar="DAY", help="The last UTC day, included; default: today.")
    @wraps(command)
    def asked(*args: Any, first: str | None, last: str | None, **given: Any) -> None:
        command(*args, days={name: day for name, day in (("from", first), ("to", last)) if day}, **given)

    return asked
