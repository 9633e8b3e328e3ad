"""`gridline batches`: create, run, list, show, watch, cancel, read the results, try the failed lines again."""

from pathlib import Path
from typing import Any

import click

from gridline.cli.connection import with_client
from gridline.cli.output import Output, say
from gridline.cli.results import end, results, retry
from gridline.cli.saving import INTO, Command, into
from gridline.cli.sending import ENDPOINT, WINDOW, create_once, endpoint_of, input_id, window_of
from gridline.cli.showing import parts, progress
from gridline.cli.watching import watch
from gridline.client import Batch, Client


@click.group()
def batches() -> None:
    """Create batches, follow them, read their results.

    Exit status of what waits for an end: 0 every line has a result, 3 some have none, 4 expired or cancelled, 1 failed.
    """


def asking(command: Command) -> Command:
    """The options of whatever makes a batch."""
    for option in (
        click.option("--description", help="Shown in lists; kept as metadata."),
        WINDOW,
        ENDPOINT,
    ):
        command = option(command)
    return command


@batches.command()
@click.argument("file", metavar="PATH|FILE_ID")
@asking
@with_client
def create(client: Client, out: Output, file: str, **asked: Any) -> None:
    """Create a batch; a path is uploaded first."""
    batch = _create(client, file, **asked)
    out.one(batch.body, parts(batch))


@batches.command()
@click.argument("file", metavar="PATH|FILE_ID")
@asking
@INTO
@with_client
def run(client: Client, out: Output, file: str, output: Path | None, **asked: Any) -> None:
    """Create a batch, wait, write its results.

    Ctrl-C leaves the batch running and says how to come back.
    """
    batch = _create(client, file, **asked)
    say(f"Created {batch.id}.")
    # Where the results go to stdout, what happens meanwhile does not.
    ended = watch(client, batch.id, None if output is None else out)
    end(client, ended, output, results=True)


@batches.command("list")
@click.option("--limit", default=20, show_default=True, help="At most this many, newest first.")
@click.option("--after", help="Go on after this batch.")
@with_client
def list_batches(client: Client, out: Output, limit: int, after: str | None) -> None:
    """List the newest batches."""
    page = client.batches(limit=limit, after=after)
    rows = [
        (
            one.id,
            one.status,
            progress(one),
            f"{one.created_at:%Y-%m-%d %H:%M}",
            one.metadata.get("description", ""),
        )
        for one in page.data
    ]
    out.many([one.body for one in page.data], ("id", "status", "lines", "UTC", "description"), rows)
    if page.has_more:
        say(f"More: gridline batches list --after {page.data[-1].id}")


@batches.command()
@click.argument("batch_id")
@with_client
def show(client: Client, out: Output, batch_id: str) -> None:
    """Show one batch: status, progress, why it waits, what it costs."""
    batch = client.batch(batch_id)
    out.one(batch.body, parts(batch))


@batches.command("watch")
@click.argument("batch_id")
@into("Write the results into this file at the end.")
@with_client
def watch_batch(client: Client, out: Output, batch_id: str, output: Path | None) -> None:
    """Follow a batch until it has ended.

    In a pipe, one JSON line for each change.
    """
    end(client, watch(client, batch_id, out), output, results=output is not None)


@batches.command()
@click.argument("batch_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_client
def cancel(client: Client, out: Output, batch_id: str, *, yes: bool) -> None:
    """Cancel a batch.

    Lines that are done are delivered and charged, the rest returns to the balance.
    """
    if not yes:
        done = client.batch(batch_id).counts.completed
        click.confirm(f"{done} lines are done and will be charged. Cancel {batch_id}?", abort=True, err=True)
    batch = client.cancel(batch_id)
    out.one(batch.body, parts(batch))


def _create(
    client: Client, file: str, *, endpoint: str | None, window: str | None, description: str | None
) -> Batch:
    endpoint, window = endpoint_of(client, file, endpoint), window_of(client, window)
    metadata = {"description": description} if description else None
    return create_once(client, input_id(client, file), endpoint=endpoint, window=window, metadata=metadata)


batches.add_command(results)
batches.add_command(retry)
