"""docs/cli.md is the help of the ``gridline`` command. Run this file to write the page anew."""

import sys
from pathlib import Path

import click

from gridline.cli.main import main

PAGE = "docs/cli.md"
HEAD = """# The gridline command

This page is the command's own help. To write it anew: `.venv/bin/python tests/house/test_cli_docs.py`.
"""


def reference() -> str:
    """The page: every command's help, depth first, in the order of the help itself."""
    return HEAD + "".join(sections(main, context_of(main, "gridline", None)))


def context_of(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    """The context that a help page is made in: a fixed width, the command's own settings."""
    return click.Context(command, parent, name, terminal_width=100, **command.context_settings)


def sections(command: click.Command, context: click.Context) -> list[str]:
    """One section for the command, then those of its sub-commands."""
    found = [f"\n## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                found += sections(inner, context_of(inner, name, context))
    return found


def test_the_page_is_the_commands_help(texts: dict[str, str]) -> None:
    """What docs/cli.md says is what the command says."""
    assert texts[PAGE] == reference()


if __name__ == "__main__":
    (Path(__file__).resolve().parents[2] / PAGE).write_text(reference())
    sys.stdout.write(f"{PAGE} written\n")
