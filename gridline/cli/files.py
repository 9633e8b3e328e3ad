"""`gridline files`: upload, list, download, delete, and what a batch of one would cost."""

from pathlib import Path
from typing import Any

import click

from gridline.cli.connection import with_client
from gridline.cli.output import Output, say
from gridline.cli.saving import INTO, save
from gridline.cli.sending import ENDPOINT, WINDOW, endpoint_of, input_id, upload, window_of
from gridline.cli.showing import where
from gridline.client import Client, FileInfo, LineError

HAS_ERRORS = 1


@click.group()
def files() -> None:
    """Upload files, list them, download them, see what they would cost."""


@files.command("upload")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@with_client
def upload_file(client: Client, out: Output, path: Path) -> None:
    """Upload an input file for batches."""
    file = upload(client, path)
    out.one(file.body, _parts(file))


@files.command("list")
@click.option("--limit", default=20, show_default=True, help="At most this many, newest first.")
@click.option("--after", help="Go on after this file.")
@with_client
def list_files(client: Client, out: Output, limit: int, after: str | None) -> None:
    """List the newest files."""
    page = client.files(limit=limit, after=after)
    rows = [
        (one.id, one.filename, one.bytes, one.purpose, f"{one.created_at:%Y-%m-%d %H:%M}")
        for one in page.data
    ]
    out.many([one.body for one in page.data], ("id", "name", "bytes", "purpose", "UTC"), rows)
    if page.has_more:
        say(f"More: gridline files list --after {page.data[-1].id}")


@files.command()
@click.argument("file_id")
@INTO
@with_client
def download(client: Client, out: Output, file_id: str, output: Path | None) -> None:  # noqa: ARG001  # bytes are shown as they are
    """Download a file."""
    with client.download(file_id) as content:
        save(content, output)


@files.command()
@click.argument("file_id")
@with_client
def delete(client: Client, out: Output, file_id: str) -> None:
    """Delete a file; one that a batch still needs is refused."""
    client.delete_file(file_id)
    out.one({"id": file_id, "deleted": True}, [("deleted", file_id)])


@files.command()
@click.argument("file", metavar="PATH|FILE_ID")
@ENDPOINT
@WINDOW
@with_client
def check(client: Client, out: Output, file: str, endpoint: str | None, window: str | None) -> None:
    """Check a file's lines as a batch would, and say what it would cost. Makes no batch and holds nothing.

    A path is uploaded for that, and stays as a file that a batch can use. Exit status 1: some lines are wrong.
    """
    endpoint, window = endpoint_of(client, file, endpoint), window_of(client, window)
    file_id = input_id(client, file)
    found = client.estimate(file_id, endpoint=endpoint, window=window)
    wrong = found.get("errors") or {}
    out.one(found, [("file", file_id), *_cost(found), ("wrong lines", wrong.get("total"))])
    for one in [] if out.as_json else wrong.get("data", ()):
        say(where(LineError.from_json(one)))
    if wrong:
        raise SystemExit(HAS_ERRORS)


def _cost(found: Any) -> list[tuple[str, object]]:
    """What an estimate says, from the surest to the guess."""
    covered = {True: "yes", False: "no: add credit, or send less", None: None}[found.get("covered")]
    ceiling, likely = found.get("ceiling"), found.get("likely")
    return [
        ("model", found.get("model")),
        ("lines", found.get("lines")),
        ("at most", ceiling and f"{ceiling} credits"),
        ("likely", likely and f"{likely} credits"),
        ("covered", covered),
    ]


def _parts(file: FileInfo) -> list[tuple[str, object]]:
    return [("id", file.id), ("name", file.filename), ("bytes", file.bytes), ("purpose", file.purpose)]
