"""Waiting for a batch's end: a bar on a terminal, JSON lines in a pipe, and an exit status that says how it ended."""

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gridline.cli.output import Output, printable, say
from gridline.client import Batch, Client, ClientError

POLL_SECONDS = 2.0
POLL_SECONDS_MAX = 30.0
TRANSIENT = frozenset({"timeout", "unreachable", "unreadable"})
SERVER_ERROR, TOO_MANY = 500, 429

FAILED, LINES_FAILED, STOPPED, DETACHED = 1, 3, 4, 130
"""Exit statuses: nothing ran; some lines have no result; it expired or was cancelled; Ctrl-C."""


def exit_status(batch: Batch) -> int:
    """What a script needs to know of an ended batch."""
    if batch.status == "completed":
        return LINES_FAILED if batch.counts.failed else 0
    return FAILED if batch.status == "failed" else STOPPED


def watch(
    client: Client, batch_id: str, out: Output | None, *, sleep: Callable[[float], None] = time.sleep
) -> Batch:
    """Follow a batch until it has ended, through restarts of the API; each change is a JSON line of ``out``.

    Raises:
        SystemExit: Ctrl-C; the batch goes on, and how to come back is said.
        ClientError: the API refuses, e.g. because there is no such batch.
    """
    try:
        return _follow(client, batch_id, out, sleep)
    except KeyboardInterrupt:
        say(f"\nDetached; the batch goes on. Come back with: gridline batches watch {batch_id}")
        raise SystemExit(DETACHED) from None


def _follow(client: Client, batch_id: str, out: Output | None, sleep: Callable[[float], None]) -> Batch:
    shown, pause = None, POLL_SECONDS
    with _bar() as bar:
        task = bar.add_task(batch_id, total=None)
        while True:
            try:
                batch = client.batch(batch_id)
            except ClientError as error:
                if not heals(error):
                    raise
                bar.update(task, description=printable(f"{batch_id}: {error.message}"))
                pause = min(2 * pause, POLL_SECONDS_MAX)
            else:
                counts, pause = batch.counts, POLL_SECONDS
                bar.update(
                    task,
                    description=_words(batch),
                    total=counts.total or None,
                    completed=counts.total - counts.left,
                )
                now = (batch.status, counts, batch.wait)
                if now != shown and out is not None and out.as_json:
                    out.line(batch.body)
                shown = now
                if batch.ended:
                    return batch
            sleep(pause)


def _bar() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def heals(error: ClientError) -> bool:
    """Whether the same call may succeed in a moment."""
    return error.code in TRANSIENT or error.status == TOO_MANY or (error.status or 0) >= SERVER_ERROR


def _words(batch: Batch) -> str:
    return printable(f"{batch.status}: {batch.wait.reason}" if batch.wait else batch.status)
