import json
import os
import signal
import subprocess
import sys

import pytest

from gpu_jobs.engine_start import lines_at_once
from gridline.lines.exits import JobExit
from gridline.settings import ROOT
from gridline.storage import layout
from tests.gpu_jobs.conftest import Partition, until

pytestmark = pytest.mark.programs

CANARY = "canary-8d1f"


def test_killed_in_the_middle(partition: Partition) -> None:
    """After kill -9 the next attempt redoes only lines that no closed segment holds, and each line is there once."""
    lines = 120
    # The engine's order is long lines first: a full segment of quick ones, then some that are caught in flight.
    partition.write([*(f"a quick line {number}" for number in range(100)), *["!sleep=1"] * 20])
    first = partition.start()
    until(partition.rows)
    first.kill()
    first.communicate()
    kept = {row.line for row in partition.rows()}
    assert 0 < len(kept) < lines
    sent = len(partition.sent())
    second = partition.start(attempt=2)
    log, _ = second.communicate(timeout=60)
    assert second.returncode == JobExit.DONE, log
    redone = [row.line for row in partition.rows(2)]
    assert sorted([*kept, *redone]) == list(range(lines))
    assert len(partition.sent()) - sent == lines - len(kept)
    assert partition.progress(2)["done"] == lines


def test_sigterm_flushes(partition: Partition) -> None:
    """SIGTERM closes what is finished at once, and the job says that it was stopped."""
    # One more than may be in flight: all are sent only once the quick one is finished, for the others never are.
    hanging = [f"!hang {number}" for number in range(lines_at_once()[0])]
    partition.write(["a quick line, the longest and so the first", *hanging])
    job = partition.start()
    until(lambda: len(partition.sent()) == len(hanging) + 1)
    assert job.stdout is not None
    job.terminate()
    log, _ = job.communicate(timeout=15)
    assert job.returncode == JobExit.STOPPED, log
    assert [row.line for row in partition.rows()] == [0]
    assert partition.progress()["state"] == "stopped"


def test_log_holds_no_prompt(partition: Partition) -> None:
    """The log is JSON lines with ids and counts; no prompt and no answer is in it, whatever fails."""
    texts = [f"{CANARY} {word}" for word in ("", "!status=500", "!overlong", "!broken", "!die")]
    partition.write(texts)
    job = partition.start()
    log, _ = job.communicate(timeout=60)
    assert job.returncode == JobExit.DONE
    lines = [json.loads(line) for line in log.splitlines()]
    assert {line["batch_id"] for line in lines} == {partition.batch_id}
    assert {line["partition"] for line in lines} == {0}
    assert CANARY not in log


def test_crash_says_where_and_not_what(partition: Partition) -> None:
    """A crash is exit code 1 and names its place, without the text of an error that may quote a prompt."""
    partition.write(["x"])
    key = layout.partition_lines_key(partition.batch_id, 0)
    partition.store.replace(key, CANARY.encode())
    job = partition.start()
    log, _ = job.communicate(timeout=60)
    assert job.returncode == JobExit.CRASHED
    assert json.loads(log.splitlines()[-1])["message"] == "crashed"
    assert "partition.py" in log
    assert CANARY not in log


def test_dies_with_its_starter(partition: Partition) -> None:
    """A job whose starter is killed closes what is finished and ends by itself."""
    partition.write(["quick", "!hang"])
    order = partition.order().to_json()
    starter = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys; child = subprocess.Popen(sys.argv[1:]); print(child.pid, flush=True); child.wait()",
            *(sys.executable, "-m", "gpu_jobs.run", order),
        ],
        cwd=ROOT,
        env=partition.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    until(lambda: len(partition.sent()) == 2)
    os.kill(starter.pid, signal.SIGKILL)
    starter.communicate()
    until(lambda: partition.progress()["state"] == "stopped")
    until(lambda: not _lives(pid))
    assert [row.line for row in partition.rows()] == [0]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
