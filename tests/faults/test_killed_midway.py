"""kill -9 of a real job, and of its engine, at a tenth, half and nine tenths of a batch: what is done again, counted at the engine."""

import os
import signal
from collections import Counter
from subprocess import Popen

import pytest

from gridline.capacity import attempts
from gridline.limits import SEGMENT_LINES_MAX
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.proof import platform as proof
from tests.faults.small_platform import AT_ONCE, SmallPlatform, requests
from tests.gpu_jobs.conftest import until

pytestmark = [pytest.mark.programs, pytest.mark.deep, pytest.mark.timeout(180)]

LINES = 600
TEXTS = [f"line {number:04d} !sleep=1" for number in range(LINES)]
SHARES = (10, 50, 90)


def midway(platform: SmallPlatform, share: int) -> tuple[str, JobOrder, Popen[str]]:
    """A batch whose engine takes its time with each line, and its job when so many percent of them were sent."""
    batch_id = platform.create(requests(TEXTS))
    order = platform.begin(batch_id)
    job = platform.start(order)
    until(lambda: len(platform.journalled()) >= LINES * share // 100, 60)
    return batch_id, order, job


def check_whole(platform: SmallPlatform, batch_id: str) -> None:
    """Every line is delivered once, in order, and the books and all promises hold."""
    ended = platform.finish(batch_id)
    assert (ended.status, ended.completed, ended.failed) == ("completed", LINES, 0)
    assert [one["custom_id"] for one in platform.lines(ended.output_file_id)] == [
        f"c{number}" for number in range(LINES)
    ]
    assert platform.balance()[1] == 0
    assert proof.prove_with_files().broken == []


def again(platform: SmallPlatform, before: Counter[str]) -> set[int]:
    """Lines that an engine was asked before and again since."""
    return {int(text[5:9]) for text in platform.asked() - before if before[text]}


@pytest.mark.parametrize("share", SHARES)
def test_a_killed_job_costs_only_what_no_segment_held(small_platform: SmallPlatform, share: int) -> None:
    """Done again is exactly what was sent and in no closed segment: at most a segment, a moment's lines and those in flight."""
    batch_id, order, job = midway(small_platform, share)
    job.kill()
    job.communicate()
    closed, before = small_platform.closed(order), small_platform.asked()
    assert attempts.end(batch_id, 0, order.lease_id, JobExit.of(job.returncode)) == "again"
    assert small_platform.run(batch_id)[0] == "done"
    redone = again(small_platform, before)
    assert redone == {int(text[5:9]) for text in before} - closed
    # A line takes a second and segments are closed every 0.2 s: the disk may be two seconds late.
    assert 0 < len(redone) <= SEGMENT_LINES_MAX + 3 * AT_ONCE
    assert max(small_platform.asked().values()) <= 2
    check_whole(small_platform, batch_id)


@pytest.mark.parametrize("share", SHARES)
def test_a_killed_engine_costs_only_what_was_in_flight(small_platform: SmallPlatform, share: int) -> None:
    """The same job goes on with another engine, and only lines in flight are sent again, once."""
    batch_id, order, job = midway(small_platform, share)
    (engine,) = small_platform.engines()
    os.kill(engine, signal.SIGKILL)
    log, _ = job.communicate(timeout=90)
    assert job.returncode == JobExit.DONE, log
    asked = small_platform.asked()
    assert 0 < sum(asked.values()) - LINES <= AT_ONCE
    assert max(asked.values()) == 2
    assert len(asked) == LINES
    assert len(small_platform.engines()) == 2
    assert attempts.end(batch_id, 0, order.lease_id, JobExit.DONE) == "done"
    check_whole(small_platform, batch_id)
