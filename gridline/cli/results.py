"""`gridline batches results` and `retry`, and what follows a batch's end: files to fetch, lines to try again."""

import json
import tempfile
from pathlib import Path
from typing import BinaryIO, cast

import click

from gridline.cli.connection import with_client
from gridline.cli.output import Output, say
from gridline.cli.saving import INTO, into, opened, save
from gridline.cli.sending import create_once
from gridline.cli.showing import parts, progress, where
from gridline.cli.watching import exit_status
from gridline.client import Batch, Client, retrying


@click.command()
@click.argument("batch_id")
@INTO
@click.option("--errors", is_flag=True, help="The lines without a result instead.")
@click.option("--partial", is_flag=True, help="What is done so far, in the order in which it was done.")
@with_client
def results(
    client: Client,
    out: Output,  # noqa: ARG001  # lines are shown as they are
    batch_id: str,
    output: Path | None,
    *,
    errors: bool,
    partial: bool,
) -> None:
    """Write the results of a batch, in the order of its input."""
    if partial:
        _partial(client, batch_id, output)
        return
    batch = client.batch(batch_id)
    if not batch.ended:
        raise click.ClickException(
            f"{batch_id} is {batch.status}. Wait with 'gridline batches watch {batch_id}', or add --partial for what is done."
        )
    file_id = batch.error_file_id if errors else batch.output_file_id
    if file_id is None:
        say(f"{batch_id} has no {'lines without a result' if errors else 'results'}.")
        return
    with client.download(file_id) as content:
        save(content, output)


@click.command()
@click.argument("batch_id")
@into("Only write the lines into this file.")
@with_client
def retry(client: Client, out: Output, batch_id: str, output: Path | None) -> None:
    """Make a batch of the lines that have no result."""
    batch = client.batch(batch_id)
    if not batch.ended:
        raise click.ClickException(
            f"{batch_id} is {batch.status}: which lines fail is known when it has ended."
        )
    wanted = retrying.failed_ids(client, batch)
    if not wanted:
        raise click.ClickException(f"{batch_id} is {batch.status} and names no failed line.")
    if output is not None:
        with opened(output) as file:
            count = retrying.write_failed(client, batch, wanted, file)
        say(f"{count} lines written to {output}.")
        return
    with tempfile.TemporaryFile() as scratch:
        count = retrying.write_failed(client, batch, wanted, cast("BinaryIO", scratch))
        scratch.seek(0)
        file_id = client.upload(f"retry-of-{batch_id}.jsonl", cast("BinaryIO", scratch)).id
    say(f"{count} lines go again.")
    again = create_once(
        client,
        file_id,
        endpoint=batch.endpoint,
        window=batch.completion_window,
        metadata={"retry_of": batch_id},
    )
    out.one(again.body, parts(again))


def end(client: Client, batch: Batch, output: Path | None, *, results: bool) -> None:
    """Say how it ended, write what it has, and leave with the status that says the same."""
    say(f"{batch.id} is {batch.status}: {progress(batch)}.")
    for error in batch.errors:
        say(where(error))
    if results and batch.output_file_id is not None:
        with client.download(batch.output_file_id) as content:
            save(content, output)
    if batch.error_file_id is not None:
        say(f"Lines without a result: gridline batches results {batch.id} --errors")
    raise SystemExit(exit_status(batch))


def _partial(client: Client, batch_id: str, output: Path | None) -> None:
    """What is done so far, page by page."""
    with opened(output) as file:
        page = client.results(batch_id)
        while page.lines:
            for line in page.lines:
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            page = client.results(batch_id, after=page.next_cursor)
    if page.incomplete:
        say(f"{batch_id} goes on; this is what it has so far.")
