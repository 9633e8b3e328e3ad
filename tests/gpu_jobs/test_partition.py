import json
from pathlib import Path

import pytest

from gpu_jobs.partition import Line, finished_lines
from gridline.lines.segments import ResultRow, write_rows
from gridline.storage import Store, layout
from tests.gpu_jobs.stored_lines import stored


def line(number: int, *messages: str, tokens: int = 1) -> Line:
    body = {"messages": [{"role": "user", "content": text} for text in messages]}
    return Line(number, f"ünique {number}", json.dumps(body, ensure_ascii=False), tokens)


A, B = ("system a " * 40, "system b " * 40)


def test_lines_come_back_as_they_were(tmp_path: Path) -> None:
    """Whatever characters a line has, and wherever it stands, it is read again as validation wrote it."""
    lines = [line(number, "déjà \u2028 😀" * number) for number in (0, 2, 3, 7, 9)]
    found = stored(tmp_path, lines)
    assert [found[place] for place in (4, 0, 3, 1, 2)] == [lines[place] for place in (4, 0, 3, 1, 2)]
    assert len(found) == 5
    assert found.in_engine_order({2, 9}) == [0, 2, 3]


def test_engine_order(tmp_path: Path) -> None:
    """Lines that share a beginning stand together, those with the longest of them first; no line is lost."""
    lines = [
        line(0, B, "x"),
        line(1, A, "x", tokens=5),
        line(2, B, "y", tokens=9),
        line(3, A, "y", tokens=7),
        line(4, "alone"),
        line(5, "alone too", tokens=8),
    ]
    assert stored(tmp_path, lines).in_engine_order() == [0, 2, 5, 1, 3, 4]


@pytest.mark.parametrize(("told", "asked", "most"), [
    ("instructions", "input", "max_output_tokens"), ("system", "messages", "max_tokens"),
])  # fmt: skip
def test_engine_order_on_other_endpoints(tmp_path: Path, told: str, asked: str, most: str) -> None:
    """What a request is told before its conversation is the beginning that it shares, and so is its text."""
    lines = [
        Line(number, str(number), json.dumps({told: head, asked: end, most: 8}), 1)
        for number, (head, end) in enumerate([(A, "x"), (B, "x"), (A, "y"), (B, "y")])
    ]
    assert stored(tmp_path, lines).in_engine_order() == [0, 2, 1, 3]
    texts = [
        Line(number, str(number), json.dumps({asked: head + end, most: 8}), 1)
        for number, (head, end) in enumerate([(A, "x"), (B, "x"), (A, "y"), (B, "y")])
    ]
    assert stored(tmp_path, texts).in_engine_order() == [0, 2, 1, 3]


def test_engine_order_far_into_long_prompts(tmp_path: Path) -> None:
    """Long beginnings that part late are told apart as well, by pieces of a few hundred characters."""
    heads = [A * 20 + end for end in ("first " * 99, "second " * 99)]
    lines = [line(number, f"{heads[number % 2]} Question {number}") for number in range(6)]
    order = stored(tmp_path, lines).in_engine_order()
    assert sorted(order) == list(range(6))
    assert {tuple(place % 2 for place in order)} <= {(0, 0, 0, 1, 1, 1), (1, 1, 1, 0, 0, 0)}


def test_engine_order_within_one_message(tmp_path: Path) -> None:
    """Examples in front of the question, in the same message, are a shared beginning too; nested ones stay together."""
    lines = [line(number, f"{head}{more}Question {number}") for number, (head, more) in enumerate([
        (A, "first "), (B, "first "), (A, "second "), (B, "second "), (A, "first "), (B, "first "), (A, "second "),
    ])]  # fmt: skip
    assert stored(tmp_path, lines).in_engine_order() == [0, 4, 2, 6, 1, 5, 3]


def test_engine_order_of_lines_that_share_nothing(tmp_path: Path) -> None:
    """Lines that only begin as every chat does stand by length, the longest first: a short one ends the partition."""
    lines = [line(number, f"{word} " * 90, tokens=tokens) for number, (word, tokens) in enumerate((("one", 3), ("two", 9), ("six", 5)))]  # fmt: skip
    assert stored(tmp_path, lines).in_engine_order() == [1, 2, 0]


def test_engine_order_of_embeddings(tmp_path: Path) -> None:
    """Embedding lines stand by length, so that a step of the engine holds like with like."""
    lines = [Line(number, "c", json.dumps({"input": "x"}), tokens) for number, tokens in enumerate((3, 9, 5))]
    assert stored(tmp_path, lines).in_engine_order() == [1, 2, 0]


def test_the_first_attempt_that_finished_a_line_wins(tmp_path: Path) -> None:
    """A line that two attempts closed counts as the earlier one says."""
    store = Store(tmp_path.as_uri())
    for prefix, codes in (("a/", {1: None, 2: "server_error"}), ("b/", {2: None, 3: None})):
        rows = [ResultRow(number, "c", 200, "r", "{}", code, "m", 1, 1) for number, code in codes.items()]
        store.put_once(layout.segment_key(prefix, 0), write_rows(rows))
    assert finished_lines(store, ("a/", "b/")) == {1: True, 2: False, 3: True}
