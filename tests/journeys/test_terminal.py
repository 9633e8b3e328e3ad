"""A whole session with the `gridline` command, in pseudo-terminals, on the running stack: from setting up to the bill."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stack import Stack, chat_line, jsonl, long_lines
from tests.terminal import Terminal

pytestmark = [pytest.mark.stack, pytest.mark.deep, pytest.mark.timeout(900)]

EMAIL, PASSWORD = "terry@terminal.example", "correct horse battery"
QUESTIONS = ("What is the capital of France?", "Write one sentence about the sea.")
TOO_LONG = "word " * 9_000
BATCH = re.compile(r"batch_[0-9A-Za-z]{24}")

Typed = Callable[..., str]
"""Runs a command to its end and gives what it showed."""


@pytest.fixture
def start(stack: Stack, tmp_path: Path) -> Callable[..., Terminal]:
    """Starts a command in a terminal, in a home of its own that names no token."""
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config"), "BROWSER": "true"}
    nothing = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "GRIDLINE_API_URL": stack.config.public_api_url}
    return lambda *words: Terminal({**home, **nothing}, *words)


@pytest.fixture
def run(start: Callable[..., Terminal]) -> Typed:
    """Runs a command."""

    def one(*words: str, status: int = 0, seconds: float = 60) -> str:
        terminal = start(*words)
        assert terminal.end(seconds=seconds) == status, terminal.seen
        return terminal.seen

    return one


def set_up(start: Callable[..., Terminal]) -> None:
    """Answer the questions of `gridline setup --apply`, as somebody new."""
    terminal = start("setup", "--apply")
    for question, answer in (
        ("Base URL", ""), ("E-mail", EMAIL), ("Password", PASSWORD), ("Sign up with them?", "y"), ("once more", PASSWORD),
    ):  # fmt: skip
        terminal.until(question)
        terminal.type(f"{answer}\n")
    assert terminal.end() == 0, terminal.seen
    assert "Made the token" in terminal.seen
    assert PASSWORD not in terminal.seen


def test_a_whole_session_in_a_terminal(
    stack: Stack, start: Callable[..., Terminal], run: Typed, tmp_path: Path
) -> None:
    """Sets up, checks and runs a file, leaves a long batch and comes back, reads results, retries failed lines, pays."""
    set_up(start)
    assert "Nothing to do" in run("setup", "--apply")
    stack.gridline("ops", "grant", EMAIL, "2", "--why", "Welcome", "--key", "welcome")
    assert "2.000000000 credits" in run("balance")

    source, answers = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    source.write_bytes(jsonl([chat_line(number, text) for number, text in enumerate(QUESTIONS)]))
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(jsonl([chat_line(0, "Good"), "no JSON"]))
    assert "line 2" in run("files", "check", str(bad), status=1).lower()
    assert "credits" in run("files", "check", str(source))
    told = run("batches", "run", str(source), "-o", str(answers), seconds=240)
    (first,) = set(BATCH.findall(told))
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [line["custom_id"] for line in lines] == ["line-0", "line-1"]
    assert "Paris" in lines[0]["response"]["body"]["choices"][0]["message"]["content"]

    # Left with Ctrl-C while it runs, come back to, and one of its lines fails.
    long = tmp_path / "long.jsonl"
    long.write_bytes(jsonl([*long_lines(40), chat_line(40, TOO_LONG)]))
    watched = start("batches", "run", str(long))
    watched.until("in_progress", seconds=180)
    watched.process.send_signal(signal.SIGINT)
    assert watched.end() == 130, watched.seen
    second = next(one for one in BATCH.findall(watched.seen) if one != first)
    assert f"gridline batches watch {second}" in watched.seen
    assert "context_length_exceeded" in run("batches", "watch", second, status=3, seconds=300) + run(
        "batches", "results", second, "--errors"
    )
    again = tmp_path / "again.jsonl"
    run("batches", "retry", second, "-o", str(again))
    assert [json.loads(one)["custom_id"] for one in again.read_text().splitlines()] == ["line-40"]

    listed = run("batches", "list")
    assert first in listed
    assert second in listed
    assert "{" not in listed
    assert "completed" in run("batches", "show", first)
    assert "questions.jsonl" in run("files", "list")
    assert "smollm2-135m-instruct" in run("usage")
    statement = run("statement")
    assert "opening" in statement
    assert "settle" in statement
    assert f"/batch?id={first}" in run("open", first)


def test_webhooks_and_completion_in_a_terminal(
    stack: Stack, start: Callable[..., Terminal], run: Typed
) -> None:
    """A webhook is made, with its secret shown once, listed and deleted; bash is given names to complete."""
    token = stack.customer("terminal-webhooks").token
    made = run("webhooks", "create", "https://93.184.215.14/hooks", "--token", token)
    assert "whsec_" in made
    listed = run("webhooks", "list", "--token", token)
    assert "https://93.184.215.14/hooks" in listed
    assert "whsec_" not in listed
    (webhook,) = set(re.findall(r"whk_[0-9A-Za-z]+", listed))
    run("webhooks", "delete", webhook, "--token", token)
    assert webhook not in run("webhooks", "list", "--token", token)
    assert "_GRIDLINE_COMPLETE" in run("completion", "bash")
