"""Two hundred questions as one batch on the real engine: what an evaluation job looks like."""

import json
from pathlib import Path

import pytest

from gridline.settings import ROOT
from tests.stack import Stack, chat_line

pytestmark = [pytest.mark.stack, pytest.mark.deep, pytest.mark.timeout(1500)]

QUESTIONS = 200
# GSM8K's test set, where it lies beside the project; its questions stand in the line's key "question".
GSM8K = ROOT.parent / "shared" / "data" / "gsm8k-test.jsonl"


def questions(path: Path) -> list[str]:
    """School-mathematics questions from the file, or as many of our own."""
    if path.exists():
        with path.open() as file:
            return [json.loads(line)["question"] for line, _ in zip(file, range(QUESTIONS), strict=False)]
    return [
        f"A baker has {number} boxes with {number + 3} rolls each and sells {number * 2} rolls. How many are left?"
        for number in range(1, QUESTIONS + 1)
    ]


def test_two_hundred_questions_complete_as_one_batch(stack: Stack) -> None:
    """Each question is answered once, in order, within its tokens; the books hold afterwards."""
    customer = stack.customer("two-hundred")
    asked = questions(GSM8K)
    batch = customer.create([chat_line(number, text, tokens=24) for number, text in enumerate(asked)])
    ended = customer.finished(batch.id, seconds=1300)
    assert ended.status == "completed", ended
    assert (ended.request_counts.completed, ended.request_counts.failed) == (QUESTIONS, 0)
    lines = customer.lines(ended.output_file_id)
    assert [line["custom_id"] for line in lines] == [f"line-{number}" for number in range(QUESTIONS)]
    answers = [line["response"]["body"]["choices"][0]["message"]["content"] for line in lines]
    assert all(answers)
    assert all(line["response"]["body"]["usage"]["completion_tokens"] <= 24 for line in lines)
    assert "The books hold" in stack.gridline("books")
