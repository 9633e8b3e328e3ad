"""What dies comes back, and nobody pays twice: the GPU job killed midway."""

import signal

import pytest

from gridline.money import credits_nanos
from tests.stack import Stack, chat_line, eventually, gpu_jobs

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]

LINES = 64


def test_a_killed_gpu_job_is_taken_up_again(stack: Stack) -> None:
    """Kill -9 of the job in the middle of 64 lines: the batch completes, each custom_id once, one charge."""
    customer = stack.customer("killed-job")
    batch = customer.create([chat_line(n, f"What is {n} plus {n}?", tokens=32) for n in range(LINES)])

    def some_are_done() -> bool:
        counts = customer.openai.batches.retrieve(batch.id).request_counts
        return counts is not None and 0 < counts.completed < LINES

    eventually(some_are_done, seconds=180, what="some lines are done")
    (job,) = gpu_jobs(stack)
    job.send_signal(signal.SIGKILL)
    ended = customer.finished(batch.id, seconds=400)
    assert ended.status == "completed"
    lines = customer.lines(ended.output_file_id)
    assert [line["custom_id"] for line in lines] == [f"line-{n}" for n in range(LINES)]
    outcomes = stack.rows("SELECT number FROM attempts WHERE batch_id = %s ORDER BY number", batch.id)
    assert len(outcomes) == 2
    resolved = stack.rows("SELECT charged_nanos FROM resolutions WHERE batch_id = %s", batch.id)
    receipt = customer.get(f"/batches/{batch.id}/receipt")
    assert resolved == [(credits_nanos(receipt["charged"]),)]
    tokens = [line["response"]["body"]["usage"] for line in lines]
    assert receipt["output_tokens"] == sum(one["completion_tokens"] for one in tokens)
    assert "The books hold" in stack.gridline("books")
