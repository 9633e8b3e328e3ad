"""Estimates: the ceiling is the hold's, or never below it, and bad lines are told as validation tells them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from gridline import limits
from gridline.lines import estimating
from gridline.lines.checking import Checked
from gridline.lines.estimating import Guess, guess_file
from gridline.lines.rules import Rules
from gridline.storage.objects import Store

from .conftest import (
    CARDS,
    CHAT,
    EMBEDDINGS,
    FILE_KEY,
    RESPONSES,
    Check,
    chat_line,
    embedding_line,
    jsonl,
)

Both = Callable[..., tuple[Guess, Checked]]


@pytest.fixture
def both(check: Check, store: Store, models_folder: Path) -> Both:
    """What an estimate and what validation say of these lines."""

    def run(
        *lines: object, endpoint: str = CHAT, storing_fails: Literal["file", "line"] = "file"
    ) -> tuple[Guess, Checked]:
        checked = check(*lines, endpoint=endpoint, storing_fails=storing_fails)
        data = jsonl(*lines)
        guess = guess_file(
            store,
            Rules(endpoint, CARDS, storing_fails=storing_fails),
            file_key=FILE_KEY,
            file_bytes=len(data),
            models_folder=models_folder,
        )
        return guess, checked

    return run


def conversations() -> list[dict[str, Any]]:
    """Chat lines of every kind that is sized in its own way."""
    return [
        chat_line("plain"),
        chat_line("open", max_tokens=None),
        chat_line("choices", n=3, max_tokens=7),
        chat_line("long", messages=[{"role": "user", "content": "ü" * 4000}], max_tokens=None),
        chat_line("too long", messages=[{"role": "user", "content": "x" * 8190}], max_tokens=100),
        chat_line("far too long", messages=[{"role": "user", "content": "x" * 90_000}]),
        chat_line("refused", messages=[{"role": "user", "content": "FORBIDDEN"}]),
    ]


def test_a_small_file_is_estimated_as_it_would_be_held(both: Both) -> None:
    """Every line counted: ceiling, tokens, lines and error lines are validation's own."""
    guess, checked = both(*conversations())
    assert guess.exact
    assert guess.ceiling_nanos == checked.ceiling_nanos > 0
    assert (guess.lines, guess.refused, guess.input_tokens) == (7, checked.refused, checked.input_tokens)
    assert checked.refused == 3
    assert guess.card == checked.card


def test_embeddings_are_estimated_as_they_would_be_held(both: Both) -> None:
    """Texts and token ids, one or many: the same numbers, nothing written."""
    lines = [
        embedding_line("a"),
        embedding_line("b", input=["w1", "w2 w3 " * 5]),
        embedding_line("c", input=[1, 2, 3]),
        embedding_line("d", input="w1 " * 40),
    ]
    guess, checked = both(*lines, endpoint=EMBEDDINGS)
    assert (guess.ceiling_nanos, guess.output_tokens_max) == (checked.ceiling_nanos, 0)
    assert (guess.refused, guess.exact) == (1, True)


def test_responses_are_estimated_as_they_would_be_held(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers again; one that asks for a stored response and fails alone costs nothing, counted or not."""
    bodies: list[dict[str, Any]] = [
        {"input": "Say ok", "max_output_tokens": 7},
        {"input": "Say ok", "instructions": "Be brief."},
        {"input": "Say ok", "store": True},
    ]
    lines = [
        {"custom_id": str(number), "method": "POST", "url": RESPONSES, "body": {"model": "tiny-chat", **body}}
        for number, body in enumerate(bodies)
    ]
    guess, checked = both(*lines, endpoint=RESPONSES, storing_fails="line")
    assert (guess.ceiling_nanos, guess.refused, guess.exact) == (checked.ceiling_nanos, 1, True)
    assert guess.output_tokens_max == 7 + 1024
    monkeypatch.setattr(limits, "ESTIMATE_COUNTED_LINES_MAX", 0)
    guess, _ = both(*lines, endpoint=RESPONSES, storing_fails="line")
    assert checked.ceiling_nanos <= guess.ceiling_nanos < 2 * checked.ceiling_nanos


@pytest.mark.parametrize("bound", ["ESTIMATE_COUNTED_LINES_MAX", "ESTIMATE_COUNTED_BYTES_MAX"])
def test_a_large_file_is_never_estimated_too_low(
    both: Both, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """Past either bound the answer says that it is not exact, and its ceiling covers the hold."""
    monkeypatch.setattr(limits, bound, 1)
    monkeypatch.setattr(limits, "ESTIMATE_SAMPLED_BYTES", 100)
    guess, checked = both(*conversations())
    assert not guess.exact
    assert guess.ceiling_nanos >= checked.ceiling_nanos
    assert guess.ceiling_nanos < 2 * checked.ceiling_nanos
    assert guess.lines == checked.total
    lines = [embedding_line(str(number), input=["w1 w2"] * number) for number in range(1, 9)]
    guess, checked = both(*lines, endpoint=EMBEDDINGS)
    assert not guess.exact
    assert guess.ceiling_nanos >= checked.ceiling_nanos


def test_what_is_not_counted_is_expected_to_be_like_what_is(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal lines, a part of them counted: the tokens that are expected of all are nearly those of all."""
    lines = [
        chat_line(f"{number:03}", messages=[{"role": "user", "content": "x" * 200}]) for number in range(100)
    ]
    monkeypatch.setattr(limits, "ESTIMATE_COUNTED_BYTES_MAX", 1)
    monkeypatch.setattr(limits, "ESTIMATE_SAMPLED_BYTES", len(jsonl(*lines)) // 10)
    guess, checked = both(*lines)
    assert not guess.exact
    assert abs(guess.input_tokens - checked.input_tokens) <= checked.input_tokens // 50


def test_bad_lines_are_told_as_validation_tells_them(both: Both) -> None:
    """The first ten with the total, in file order; then no number is given."""
    bad = [chat_line(f"b{number}", stream=True) for number in range(12)]
    guess, checked = both(chat_line("a"), *bad, b"{", chat_line("z"))
    assert (guess.errors_total, len(guess.errors)) == (checked.errors_total, 10) == (13, 10)
    assert guess.errors == list(checked.errors[:10])
    assert guess.lines == checked.total == 15
    guess, checked = both(b"")
    assert guess.errors == list(checked.errors)
    assert guess.card is None


def test_schemas_get_a_moment_and_no_more(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that validation would judge is judged; one that there is no time for is let through, not exactly."""
    form = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
    guess, _ = both(chat_line("a", response_format=form))
    assert guess.errors_total == 0
    bad = json.loads(json.dumps(form))
    bad["json_schema"]["schema"] = {"type": "nothing"}
    guess, checked = both(chat_line("a", response_format=bad))
    assert guess.errors == list(checked.errors) != []
    monkeypatch.setattr(limits, "ESTIMATE_SCHEMAS_SECONDS_MAX", 0)
    guess, checked = both(chat_line("a", response_format=form))
    assert not guess.exact
    assert guess.ceiling_nanos == checked.ceiling_nanos


def test_the_judge_is_ended(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is left behind by an estimate."""
    ended = []
    original = estimating.HastyJudge.__exit__

    def leave(self: estimating.HastyJudge, *told: Any) -> None:
        original(self, *told)
        ended.append(self._child)

    monkeypatch.setattr(estimating.HastyJudge, "__exit__", leave)
    form = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
    both(chat_line("a", response_format=form))
    assert ended == [None]
