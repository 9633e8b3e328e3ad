"""Input files on their way to the API: a path is uploaded with a bar, an id is taken as it is."""

import json
import secrets
import time
from functools import partial
from pathlib import Path

import click

from gridline.cli.output import say
from gridline.cli.saving import bytes_bar
from gridline.cli.watching import heals
from gridline.client import Batch, Client, ClientError, FileInfo

FIRST_LINE_BYTES_MAX = 1 << 20
PAUSES_SECONDS = (1.0, 3.0)
"""Between the tries of a create."""


def upload(client: Client, path: Path) -> FileInfo:
    """Upload a file, read while it is sent."""
    try:
        with path.open("rb") as file, bytes_bar() as bar:
            reader = bar.wrap_file(file, total=path.stat().st_size, description=path.name)
            return client.upload(path.name, reader)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}.") from error


def input_id(client: Client, given: str) -> str:
    """The id of an input: an id as it is, a path once it is uploaded."""
    if given.startswith("file-") and not Path(given).exists():
        return given
    file = upload(client, Path(given))
    say(f"Uploaded {given} as {file.id}.")
    return file.id


def create_once(
    client: Client, file_id: str, *, endpoint: str, window: str, metadata: dict[str, str] | None
) -> Batch:
    """Make one batch, also when the answer to the first try is lost."""
    create = partial(
        client.create_batch,
        file_id,
        endpoint=endpoint,
        window=window,
        metadata=metadata,
        key=secrets.token_hex(16),
    )
    for pause in PAUSES_SECONDS:
        try:
            return create()
        except ClientError as error:
            if not heals(error):
                raise
        time.sleep(pause)
    return create()


ENDPOINT = click.option("--endpoint", help="Where all lines go; default: where the first one does.")
WINDOW = click.option("--window", help="How long the batch may take, as 24h; default: the platform's first.")


def endpoint_of(client: Client, given: str, endpoint: str | None) -> str:
    """The endpoint that was asked for, or the one of the file's first line.

    Raises:
        click.UsageError: neither says one that the platform has.
    """
    url = endpoint
    if url is None:
        try:
            with Path(given).open("rb") as file:
                url = json.loads(file.readline(FIRST_LINE_BYTES_MAX))["url"]
        except (OSError, ValueError, LookupError, TypeError):
            url = None
    known = client.platform.endpoints
    if url not in known:
        where = f"The first line of {given}" if endpoint is None else "--endpoint"
        raise click.UsageError(
            f"{where} names no endpoint that is known here. Add --endpoint: {' or '.join(known)}."
        )
    return str(url)


def window_of(client: Client, window: str | None) -> str:
    """The completion window that was asked for, or the platform's first.

    Raises:
        click.UsageError: the platform has no such window.
    """
    known = client.platform.windows
    if window is not None and window not in known:
        raise click.UsageError(f"--window is {' or '.join(known)} here.")
    return window or known[0]
