"""What dies comes back, and nobody pays twice: each process of the stack killed in the middle of a batch of 64 lines."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
from openai import APIError

from gridline.money import credits_nanos
from tests.stack import Customer, Stack, command_of, eventually, gpu_jobs, long_lines

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]

LINES = 64
RECOVERY_SECONDS = 120
ZOMBIE_SECONDS = 300
"""A lease, then Airflow's own time until it gives a silent task up."""
GPU_JOB, ENGINE = "gpu-job", "engine"
DYING = {
    "gpu-job": (GPU_JOB,),
    "engine": (ENGINE,),
    "scheduler": ("parts:airflow-scheduler",),
    "airflow-server": ("parts:airflow-api-server",),
    "database": ("postgres",),
    # Nothing of a running batch hangs on these, so they die one after the other under the same one.
    "bystanders": ("parts:airflow-triggerer", "parts:keeper", "parts:api"),
}
"""What is killed in the middle of one batch."""
WHEN = dict.fromkeys(("engine", "database"), pytest.mark.deep) | dict.fromkeys(
    ("scheduler", "airflow-server", "bystanders"), pytest.mark.trial
)


def begun(stack: Stack, name: str) -> tuple[Customer, str]:
    """A new customer's batch, some of whose lines are done: long enough to be caught midway on a fast machine."""
    customer = stack.customer(name)
    batch = customer.create(long_lines(LINES))
    eventually(lambda: done(customer, batch.id) > 0, seconds=180, what="some lines are done")
    assert done(customer, batch.id) < LINES, "it was over before anything could die"
    return customer, batch.id


def done(customer: Customer, batch_id: str) -> int:
    """Completed lines as the API shows them; -1 while it does not answer."""
    try:
        counts = customer.openai.batches.retrieve(batch_id).request_counts
    except APIError:
        return -1
    return counts.completed if counts else 0


def victims(stack: Stack, name: str) -> list[psutil.Process]:
    """The process that is to die."""
    if name == GPU_JOB:
        return gpu_jobs(stack)
    if name == ENGINE:
        return [
            one for one in stack.processes() if all(word in command_of(one) for word in ("vllm.", "smollm2"))
        ]
    with stack.supervisor() as supervisor:
        return [psutil.Process(supervisor.getProcessInfo(name)["pid"])]


def check_whole(stack: Stack, customer: Customer, batch_id: str, *, attempts: Callable[[int], bool]) -> None:
    """The batch completes: each line once and in order, one hold, one charge that the file gives again, sound books."""
    ended = eventually(lambda: finished(customer, batch_id), seconds=400, what=f"{batch_id} ends", every=1)
    assert ended.status == "completed"
    lines = customer.lines(ended.output_file_id)
    assert [line["custom_id"] for line in lines] == [f"line-{n}" for n in range(LINES)]
    ((tries,),) = stack.rows("SELECT count(*) FROM attempts WHERE batch_id = %s", batch_id)
    assert attempts(tries), tries
    resolved = stack.rows("SELECT charged_nanos FROM resolutions WHERE batch_id = %s", batch_id)
    receipt = customer.get(f"/batches/{batch_id}/receipt")
    assert resolved == [(credits_nanos(receipt["charged"]),)]
    used = [line["response"]["body"]["usage"] for line in lines]
    assert receipt["output_tokens"] == sum(one["completion_tokens"] for one in used)
    assert "The books hold" in stack.gridline("books")


def finished(customer: Customer, batch_id: str) -> Any:
    """The batch once it has ended, whatever the API answered until then."""
    try:
        batch = customer.openai.batches.retrieve(batch_id)
    except APIError:
        return None
    return batch if batch.completed_at else None


@pytest.mark.parametrize("case", [pytest.param(case, marks=WHEN.get(case, ())) for case in DYING])
def test_a_batch_goes_on_after_a_death(stack: Stack, case: str) -> None:
    """Kill -9 of any one process midway: within two minutes lines are done again, and the batch completes as ever."""
    customer, batch_id = begun(stack, f"death-of-{case}")
    for name in DYING[case]:
        before = done(customer, batch_id)
        assert 0 < before < LINES, f"no line is left for the death of {name}"
        dying = victims(stack, name)
        assert dying
        for one in dying:
            one.send_signal(signal.SIGKILL)
        killed = time.monotonic()

        def goes_on(before: int = before) -> bool:
            return done(customer, batch_id) > before

        eventually(goes_on, seconds=RECOVERY_SECONDS, what=f"it goes on after the death of {name}", every=0.5)
        assert time.monotonic() - killed < RECOVERY_SECONDS
    check_whole(
        stack, customer, batch_id, attempts=lambda tries: tries == 2 if case == GPU_JOB else tries >= 1
    )


@contextmanager
def standing_still(processes: list[psutil.Process]) -> Iterator[None]:
    """The processes do nothing inside the block, and go on after it as if no time had passed."""
    for one in processes:
        one.suspend()
    try:
        yield
    finally:
        for one in processes:
            one.resume()


def workers(stack: Stack) -> list[psutil.Process]:
    """The GPU jobs that run now, and every process above each up to the scheduler."""
    found = []
    for job in gpu_jobs(stack):
        above = job.parents()
        scheduler = next(place for place, one in enumerate(above) if "airflow scheduler" in command_of(one))
        found += [*reversed(above[:scheduler]), job]
    return found


@pytest.mark.trial
def test_a_worker_that_wakes_up_too_late_changes_nothing(stack: Stack) -> None:
    """A worker that stood still for longer than its lease is replaced; when it goes on, nothing is run or charged twice."""
    customer, batch_id = begun(stack, "zombie")
    before = done(customer, batch_id)
    still = workers(stack)
    assert len(still) > 1
    with standing_still(still):
        eventually(
            lambda: done(customer, batch_id) > before,
            seconds=ZOMBIE_SECONDS,
            what="another worker goes on",
            every=1,
        )
        outcomes = stack.rows("SELECT outcome FROM leases WHERE batch_id = %s ORDER BY fence", batch_id)
        assert outcomes[0] == ("expired",)
    check_whole(stack, customer, batch_id, attempts=lambda tries: tries == 2)
