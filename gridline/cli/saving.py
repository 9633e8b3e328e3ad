"""Downloads: to stdout or into a file, which appears under its name only when it is whole."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from gridline.client import Download

Command = Callable[..., None]


def into(told: str) -> Callable[[Command], Command]:
    """The option of a file to write into, with what it does there."""
    return click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help=told)


INTO = into("Into this file; default: stdout.")


def save(download: Download, path: Path | None) -> None:
    """Write what comes, in flat memory."""
    with opened(path) as file, bytes_bar(enabled=path is not None) as bar:
        task = bar.add_task("" if path is None else path.name, total=download.length)
        for chunk in download.chunks:
            file.write(chunk)
            bar.advance(task, len(chunk))


@contextmanager
def opened(path: Path | None) -> Generator[BinaryIO, None, None]:
    """Stdout, or a file that takes its name once the block has ended well.

    Raises:
        click.ClickException: the file cannot be written.
    """
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        part.unlink(missing_ok=True)


def bytes_bar(*, enabled: bool = True) -> Progress:
    """A bar of bytes on stderr, on a terminal only."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        transient=True,
        disable=not (enabled and console.is_terminal),
    )
