"""Data on stdout, all else on stderr: tables on a terminal, one JSON object a line in a pipe."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

Row = Sequence[object]


class Output:
    """How a command shows what it found; a pipe gets the API's own objects, whole."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json or not sys.stdout.isatty()

    def many(self, objects: Iterable[Mapping[str, Any]], heads: Sequence[str], rows: Iterable[Row]) -> None:
        """A list: its objects as JSON lines, or its rows as a table."""
        if self.as_json:
            for one in objects:
                self.line(one)
            return
        table = Table(*heads, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            table.add_row(*(plain(one) for one in row))
        Console().print(table)

    def one(self, body: Mapping[str, Any], rows: Iterable[tuple[str, object]]) -> None:
        """One thing: the object as JSON, or its parts below each other; parts that are None are left out."""
        if self.as_json:
            self.line(body)
            return
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, value in rows:
            if value is not None:
                table.add_row(Text(name, style="dim"), plain(value))
        Console().print(table)

    def line(self, body: Mapping[str, Any]) -> None:
        """One JSON object on a line of its own."""
        click.echo(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def say(text: str) -> None:
    """Tell whoever runs the command; never part of its data."""
    click.echo(printable(text), err=True)


def printable(text: str) -> str:
    """What a customer or another may have named, without the power to move a terminal's cursor or change its colours."""
    return "".join(one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in text)


def plain(value: object) -> Text:
    """A value as text for a table, whole however narrow the terminal is."""
    return Text(printable(str(value)), overflow="fold")
