"""What `bench.engine` sends to both sides."""

import itertools
import json
from collections.abc import Iterable
from pathlib import Path

from bench import engine_input
from gpu_jobs.partition import Line
from tests.gpu_jobs.stored_lines import stored


def test_rounds_have_no_prompt_in_common() -> None:
    """A warm engine has read nothing of a later round, examples included, as far as there are questions."""
    known = engine_input.questions(None)
    used = 20 * engine_input.EXAMPLES + 80
    rounds = [engine_input.shared(known, 80, 20, first=first) for first in (0, used, 2 * used)]
    rounds += [engine_input.distinct(known, 100, first=3 * used)]
    asked = [text.rpartition("Question: ")[2] for prompts in rounds for text in prompts]
    assert len(set(asked)) == len(asked) == 340
    beginnings = [{text[:200] for text in prompts} for prompts in rounds]
    assert [len(one) for one in beginnings[:3]] == [20, 20, 20]
    assert not set.intersection(*beginnings[:3])


def test_groups_are_shuffled_and_the_job_puts_them_together(tmp_path: Path) -> None:
    """In the file neighbours seldom begin alike; in the order of the job each beginning comes once."""
    prompts = engine_input.shared(engine_input.questions(None), 80, 20, first=0)
    data = engine_input.batch_file(prompts, "m", max_tokens=4)
    bodies = [json.loads(line)["body"] for line in data.splitlines()]
    lines = [Line(number, "c", json.dumps(body), 1) for number, body in enumerate(bodies)]

    def changes(order: Iterable[int]) -> int:
        heads = [prompts[place][:200] for place in order]
        return sum(one != other for one, other in itertools.pairwise(heads))

    assert changes(range(80)) > 60
    assert changes(stored(tmp_path, lines).in_engine_order()) == 19


def test_questions_are_read_from_a_file(tmp_path: Path) -> None:
    """JSONL with question and answer, as GSM8K has it; more prompts than questions begin again."""
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps({"question": f"q{n}", "answer": "a"}) + "\n" for n in range(3)))
    assert engine_input.distinct(engine_input.questions(path), 4, first=1) == ["q1", "q2", "q0", "q1"]
