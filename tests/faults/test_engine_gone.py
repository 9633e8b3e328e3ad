"""An engine that dies and never starts again: what ran is delivered, what did not is free, and no process is left."""

import os
import signal
from pathlib import Path

import pytest

from gridline.batches.states import Status
from gridline.capacity import allocator, attempts
from gridline.keeper.deadlines import Deadlines
from gridline.limits import ENGINE_GONE_SECONDS, START_BOUND_SECONDS
from gridline.lines.exits import JobExit
from gridline.proof import platform as proof
from tests.faults.small_platform import CREDIT, SmallPlatform, requests
from tests.gpu_jobs.conftest import until

pytestmark = [pytest.mark.programs, pytest.mark.timeout(180)]

LINES, DONE = 60, 20


def test_an_engine_gone_after_some_lines_completes_the_batch(
    small_platform: SmallPlatform, tmp_path: Path
) -> None:
    """Completed: lines that ran are delivered and charged, the others are server_error and free, and the hold is settled."""
    texts = [f"line {number:04d} {'' if number < DONE else '!sleep=60'}" for number in range(LINES)]
    batch_id = small_platform.create(requests(texts))
    order = small_platform.begin(batch_id)
    job = small_platform.start(order)
    until(lambda: len(small_platform.closed(order)) == DONE, 60)
    (tmp_path / "refuse").touch()
    os.kill(small_platform.engines()[0], signal.SIGKILL)
    log, _ = job.communicate(timeout=60)
    assert job.returncode == JobExit.CRASHED, log
    answers = [attempts.end(batch_id, 0, order.lease_id, JobExit.CRASHED)]
    while answers[-1] == "again":
        assert len(answers) < 6
        small_platform.clock.advance(seconds=ENGINE_GONE_SECONDS / 2)
        answers.append(small_platform.run(batch_id)[0])
    assert answers == ["again", "again", "again", "over"]
    ended = small_platform.finish(batch_id)
    assert (ended.status, ended.completed, ended.failed) == ("completed", DONE, LINES - DONE)
    delivered, errors = (small_platform.lines(one) for one in (ended.output_file_id, ended.error_file_id))
    assert [one["custom_id"] for one in delivered] == [f"c{number}" for number in range(DONE)]
    assert [one["custom_id"] for one in errors] == [f"c{number}" for number in range(DONE, LINES)]
    assert {one["response"]["body"]["error"]["code"] for one in errors} == {"server_error"}
    usage = [one["response"]["body"]["usage"] for one in delivered]
    charge = sum(one["prompt_tokens"] * 10 + one["completion_tokens"] * 20 for one in usage)
    assert small_platform.balance() == (10 * CREDIT - charge, 0)
    assert proof.prove_with_files().broken == []
    until(lambda: small_platform.living() == [])


def test_an_engine_gone_before_any_line_fails_the_batch_at_its_start_bound(
    small_platform: SmallPlatform, tmp_path: Path
) -> None:
    """It waits, whatever fails to start, and fails with capacity_unavailable at the bound, not before; nothing is charged."""
    (tmp_path / "refuse").touch()
    batch_id = small_platform.create(requests(["one", "two"]))
    deadlines = Deadlines(monotonic=small_platform.seconds)
    created = small_platform.row(batch_id).created_at
    for _ in range(3):
        answer, log = small_platform.run(batch_id)
        assert (answer, log[-1]["exit"]) == ("again", "ENGINE_UNHEALTHY")
        small_platform.clock.advance(hours=2)
        assert deadlines.enforce() == 0
    bound = START_BOUND_SECONDS["24h"]
    passed = (small_platform.clock.now() - created).total_seconds()
    small_platform.clock.advance(seconds=bound - passed - 1)
    assert deadlines.enforce() == 0
    assert small_platform.row(batch_id).status == Status.IN_PROGRESS
    small_platform.clock.advance(seconds=1)
    assert (deadlines.enforce(), allocator.allocate()) == (1, 0)
    ended = small_platform.row(batch_id)
    assert (ended.status, ended.error_code) == ("failed", "capacity_unavailable")
    assert (ended.output_file_id, ended.error_file_id) == (None, None)
    assert small_platform.balance() == (10 * CREDIT, 0)
    assert proof.prove_with_files().broken == []
    until(lambda: small_platform.living() == [])
