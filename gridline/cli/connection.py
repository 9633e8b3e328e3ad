"""Where the API is and with which token: options and variables that every customer's command shares."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from gridline.client import Client
from gridline.settings import settings

Command = Callable[..., None]


def with_client(command: Command) -> Command:
    """Give a command the client as its first argument; OpenAI's own variables work as they are."""

    @click.option("--url", envvar="OPENAI_BASE_URL", help="The API's base URL; default: this machine's.")
    @click.option("--token", envvar="OPENAI_API_KEY", required=True, help="Your token (or OPENAI_API_KEY).")
    @wraps(command)
    def connected(*, url: str | None, token: str, **given: Any) -> None:
        with Client(url or settings().public_api_url, token) as client:
            command(client, **given)

    return connected
