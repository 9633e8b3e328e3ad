"""A GPU job that sleeps through its lease (a stopped process, a machine that hung) and wakes up when all is decided."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.crash_bench import NEIGHBOUR, Bench, Ended, ended
from tests.faults.crash_world import LINES
from tests.faults.test_crash_matrix import START
from tests.gridline.proof.sound import lasting

pytestmark = [pytest.mark.programs, pytest.mark.timeout(180)]

COMPLETED = Ended("completed", LINES - 3, 3, 0, None)


@contextmanager
def silent_job(bench: Bench) -> Iterator[int]:
    """A job that was stopped in the midst of its partition; its lease has lapsed, and another attempt has begun."""
    setup, upload, *rest = START
    bench.take(setup, f"{upload} slow", *rest, "begin 0")
    pid = bench.start("job_alone 0")
    try:
        end = time.monotonic() + 30
        while not bench.segments(0):
            assert time.monotonic() < end, "the job closed no segment"
            time.sleep(0.01)
        os.kill(pid, signal.SIGSTOP)
        assert len(bench.closed(0)) < LINES // 2, "it was stopped too late to have anything left"
        bench.take("fall_silent 0")
        yield pid
    finally:
        if pid in bench.living:
            os.kill(pid, signal.SIGKILL)
        bench.wait_for(pid)


def wake(bench: Bench, pid: int) -> None:
    """Let it go on until it ends by itself."""
    os.kill(pid, signal.SIGCONT)
    bench.wait_for(pid)


def test_a_job_that_wakes_up_after_the_end_changes_nothing(bench: Bench) -> None:
    """Files, charge and every row stay as they were, whatever it still writes, and whatever its task says then."""
    with silent_job(bench) as pid:
        bench.take("job 0", "end 0", "drive")
        before = lasting(bench.store())
        assert ended(bench.world.batch_id) == COMPLETED
        wake(bench, pid)
        bench.take("end_late 0", "collate", "settle", "drive")
    assert lasting(bench.store()) == before
    assert ended(bench.world.values["neighbour"]) == NEIGHBOUR
    assert bench.broken() == []


def test_a_job_that_wakes_up_beside_its_successor_disturbs_nothing(bench: Bench) -> None:
    """It is told to stop, its task takes no lease back, and each line is delivered and charged once."""
    with silent_job(bench) as pid:
        wake(bench, pid)
        bench.take("end_late 0", "job 0", "end 0", "drive")
    assert ended(bench.world.batch_id) == COMPLETED
    assert bench.broken() == []
