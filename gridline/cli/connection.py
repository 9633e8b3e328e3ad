"""Where the API is, with which token, and how the answer is shown: options that every customer's command shares."""

from functools import wraps
from typing import Any

import click

from gridline.cli.output import Output
from gridline.cli.saving import Command
from gridline.client import Client
from gridline.settings import settings


def with_client(command: Command) -> Command:
    """Give a command the client and its output as first arguments; OpenAI's own variables work as they are."""

    @click.option("--url", envvar="OPENAI_BASE_URL", help="The API's base URL; default: this machine's.")
    @click.option("--token", envvar="OPENAI_API_KEY", required=True, help="Your token (or OPENAI_API_KEY).")
    @click.option("--json", "as_json", is_flag=True, help="JSON lines, as in a pipe, also on a terminal.")
    @wraps(command)
    def connected(*, url: str | None, token: str, as_json: bool, **given: Any) -> None:
        with Client(url or settings().public_api_url, token) as client:
            command(client, Output(as_json=as_json), **given)

    return connected


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
