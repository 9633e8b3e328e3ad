"""Every runbook is a test, every such test a runbook, and what a runbook names exists."""

import ast
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml  # type: ignore[import-untyped]  # has no types of its own

from gridline.batches.reasons import ReasonCode
from gridline.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/runbooks.md"
TEXT = (ROOT / PAGE).read_text()
RUNBOOKS: dict[str, str] = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
COMMAND = re.compile(r"(?:\.venv/bin/|`)(gridline [^\n`]+)")


def file_of(title: str) -> str:
    """The file of the runbook's test."""
    return f"test_{title.lower().replace(' ', '_')}.py"


def commands(text: str) -> list[list[str]]:
    """The words of every `gridline …` in a text."""
    return [shlex.split(one, comments=True)[1:] for one in COMMAND.findall(text)]


def resolved(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the words name, and the words that are left; a group when they name no command of it."""
    found: click.Command = main
    context = click.Context(main, info_name="gridline")
    while isinstance(found, click.Group) and words:
        inner = found.get_command(context, words[0])
        if inner is None:
            break
        found, words = inner, words[1:]
    return found, words


def test_there_are_ten() -> None:
    """The ten incidents of the page."""
    assert len(RUNBOOKS) == 10


def test_every_runbook_has_its_test_and_every_test_its_runbook() -> None:
    """One file each, by the title's words, whose one test has the file's name."""
    files = sorted((ROOT / "tests/runbooks").glob("test_*.py"))
    assert [one.name for one in files] == sorted(map(file_of, RUNBOOKS))
    for one in files:
        names = [node.name for node in ast.parse(one.read_text()).body if isinstance(node, ast.FunctionDef)]
        assert [name for name in names if name.startswith("test_")] == [one.stem]


@pytest.mark.parametrize("title", RUNBOOKS)
def test_a_runbook_says_what_one_sees_where_what_to_do_and_when_it_is_over(title: str) -> None:
    """Symptom, page, action and proof, in this order, each with words."""
    parts = re.findall(r"^\*\*(\w+)\.\*\* \S", RUNBOOKS[title], re.MULTILINE)
    assert parts == ["Symptom", "Page", "Action", "Proof"]


@pytest.mark.parametrize("title", RUNBOOKS)
def test_every_command_of_a_runbook_exists(title: str) -> None:
    """Each names a command, and options that it has."""
    for words in commands(RUNBOOKS[title]):
        found, left = resolved(words)
        assert not isinstance(found, click.Group), words
        options = {name for one in found.params for name in one.opts}
        assert {one for one in left if one.startswith("--")} <= options, words


@pytest.mark.parametrize("title", RUNBOOKS)
def test_the_commands_of_a_runbook_are_run_by_its_test(title: str) -> None:
    """Each that stands in a block, but for those that say again what was clicked."""
    done = "".join((ROOT / "tests/runbooks" / name).read_text() for name in (file_of(title), "bench.py"))
    blocks = re.findall(r"([^\n]*)\n```bash\n(.*?)^```", RUNBOOKS[title], re.MULTILINE | re.DOTALL)
    for before, block in blocks:
        for words in commands(block):
            path = words[: len(words) - len(resolved(words)[1])]
            said = ", ".join(f'"{one}"' for one in path)
            assert f"gridline({said}" in done or before.endswith("command:"), words


@pytest.mark.parametrize("title", RUNBOOKS)
def test_a_runbook_names_alerts_and_pages_that_exist(title: str) -> None:
    """Alerts stand in the rules and lead back here or to a section of the operator's page; metrics are documented."""
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())
    alerts = {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"]}
    assert set(re.findall(r"`(Gridline[A-Z]\w+)`", RUNBOOKS[title])) <= set(alerts)
    documented = set(
        re.findall(r"^\| `(gridline_\w+)`", (ROOT / "docs/operations.md").read_text(), re.MULTILINE)
    )
    metrics = set(re.findall(r"`(gridline_\w+)`", RUNBOOKS[title])) - set(ReasonCode)
    assert metrics <= documented
    for name, rule in alerts.items():
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        if page == PAGE:
            (one,) = [text for other, text in RUNBOOKS.items() if other.lower().replace(" ", "-") == anchor]
            assert f"`{name}`" in one


def test_a_command_that_does_not_exist_is_seen() -> None:
    """A misspelt command ends at its group, and a misspelt option is none of the command's."""
    assert isinstance(resolved(["ops", "holt", "x"])[0], click.Group)
    assert commands("`gridline ops hold b --note x`\n.venv/bin/gridline books --files  # all") == [
        ["ops", "hold", "b", "--note", "x"], ["books", "--files"]
    ]  # fmt: skip


@pytest.mark.parametrize("page", ["README.md", "docs/operations.md"])
def test_the_runbooks_are_found(page: str) -> None:
    """The pages that an operator begins with lead to them."""
    assert "runbooks.md)" in (ROOT / page).read_text()
