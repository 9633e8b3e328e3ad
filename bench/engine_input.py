"""The lines that `bench.engine` sends: questions alone, or each behind worked examples that many lines share.

Questions come from a JSONL file with `question` and `answer` (the test set of GSM8K is one), or are made here.
"""

import json
import random
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = 8
"""Worked examples in front of a question."""
NAMES = ("Ann", "Ben", "Chloe", "Dev", "Elif", "Finn", "Grace", "Hugo", "Ines", "Jon")
THINGS = ("apples", "books", "coins", "marbles", "pens", "shells", "stamps", "tickets")
PLACES = ("at the market", "in a box", "on the train", "at school", "in the garden", "by the sea")


@dataclass(frozen=True)
class Question:
    """A question and its worked answer."""

    question: str
    answer: str


def questions(path: Path | None) -> list[Question]:
    """Those of the file, or as many of our own when there is none."""
    if path is None:
        return _own(1_400)
    with path.open(encoding="utf-8") as file:
        return [Question(one["question"], one["answer"]) for one in map(json.loads, file)]


def _own(count: int) -> list[Question]:
    chance = random.Random(1)  # noqa: S311 - any questions, the same each time
    made = []
    for _ in range(count):
        (one, other), thing = chance.sample(NAMES, 2), chance.choice(THINGS)
        first, times, given = chance.randint(3, 40), chance.randint(2, 9), chance.randint(1, 30)
        text = (
            f"{one} has {first} {thing} {chance.choice(PLACES)}. {other} has {times} times as many, and gives {given} of "
            f"them away {chance.choice(PLACES)}. The next day {one} finds {chance.randint(1, 9)} more and counts all of them "
            f"again. How many {thing} do {one} and {other} have together before that day?"
        )
        worked = (
            f"{other} had {first} times {times}, which is {first * times}, and gave {given} away: {first * times - given} are "
            f"left. Together they have {first} + {first * times - given} = {first + first * times - given} {thing}."
        )
        made.append(Question(text, worked))
    return made


def distinct(known: list[Question], count: int, *, first: int) -> list[str]:
    """Prompts of as many questions from that one on."""
    return [one.question for one in _from(known, count, first=first)]


def shared(known: list[Question], count: int, groups: int, *, first: int) -> list[str]:
    """Prompts in groups that share their examples, shuffled over the file.

    Examples and questions of a round are nobody else's as far as there are enough: an engine that is warm must not
    have read them before.
    """
    examples = _from(known, groups * EXAMPLES, first=first)
    heads = [
        "\n\n".join(f"Question: {one.question}\nAnswer: {one.answer}" for one in examples[start::groups])
        for start in range(groups)
    ]
    asked = distinct(known, count, first=first + groups * EXAMPLES)
    prompts = [f"{heads[number % groups]}\n\nQuestion: {text}\nAnswer:" for number, text in enumerate(asked)]
    random.Random(first).shuffle(prompts)  # noqa: S311 - any order, the same each time
    return prompts


def batch_file(prompts: list[str], model: str, *, max_tokens: int) -> bytes:
    """The prompts as a batch's input file: greedy, so that both sides write the same answers."""
    lines = []
    for number, text in enumerate(prompts, start=1):
        message = {"role": "user", "content": text}
        body = {"model": model, "messages": [message], "temperature": 0, "max_tokens": max_tokens}
        line = {"custom_id": f"q-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
        lines.append(json.dumps(line) + "\n")
    return "".join(lines).encode()


def _from(known: list[Question], count: int, *, first: int) -> list[Question]:
    """As many questions from that one on; they begin again when there are no more."""
    return [known[(first + number) % len(known)] for number in range(count)]
