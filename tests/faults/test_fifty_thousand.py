"""The largest number of lines that a batch may have: what each line costs, and how much memory each stage takes."""

import json
import sys
from dataclasses import dataclass

import pytest
from sqlalchemy import Engine

from gridline.capacity import attempts
from gridline.limits import FILE_LINES_MAX
from gridline.lines.exits import JobExit
from gridline.settings import ROOT
from tests.faults.small_platform import SmallPlatform, requests

pytestmark = [pytest.mark.programs, pytest.mark.trial, pytest.mark.timeout(1500)]

SIZES = (FILE_LINES_MAX, 10_000, 1_000)
LINE_CHARS = 1_000
JOB_MEGABYTES_MAX = 500
FINISH_MEGABYTES_MAX = 300
FLAT_MEGABYTES = 60
"""The job may grow by so much from the smallest to the largest: numbers and places, while the texts alone are 50 MB."""
FLAT_RATIO = 1.5


@pytest.fixture
def engine_program() -> str:
    """The stub would be slower than the job."""
    return f"{sys.executable} {ROOT / 'tests' / 'fast_engine.py'}"


@dataclass
class Took:
    """One stage of one batch."""

    seconds: float
    cpu_seconds: float
    megabytes: float


def measured(platform: SmallPlatform, database: Engine, *arguments: str) -> tuple[int, Took]:
    """A stage in a process of its own: its exit, and what it took."""
    url = database.url.render_as_string(hide_password=False)
    child = platform.start_module("tests.faults.measured", *arguments, GRIDLINE_DATABASE_URL=url)
    log, _ = child.communicate(timeout=1200)
    told = json.loads(log.splitlines()[-1])
    assert told.pop("message") == "measured", log
    return child.returncode, Took(**told)


def run_batch(platform: SmallPlatform, database: Engine, lines: int) -> tuple[Took, Took]:
    """A batch of so many lines, through its job and its finish."""
    batch_id = platform.create(requests(f"{number:06d} {'x' * LINE_CHARS}" for number in range(lines)))
    order = platform.begin(batch_id)
    code, job = measured(platform, database, "job", order.to_json())
    assert attempts.end(batch_id, 0, order.lease_id, JobExit.of(code)) == "done"
    code, finish = measured(platform, database, "finish", batch_id)
    ended = platform.row(batch_id)
    assert (code, ended.status, ended.completed) == (0, "completed", lines)
    found = [one["custom_id"] for one in platform.lines(ended.output_file_id)]
    assert found == [f"c{number}" for number in range(lines)]
    sys.stdout.write(f"{lines} lines: job {job}, finish {finish}\n")  # the figures of docs/performance.md
    sys.stdout.flush()
    return job, finish


def test_memory_and_time_a_line_are_flat(small_platform: SmallPlatform, database: Engine) -> None:
    """50,000 lines take 50 times what 1,000 take, half more at most; the job stays under 500 MB, the finish under 300 MB."""
    run_batch(small_platform, database, 10)  # the engine starts
    took = {lines: run_batch(small_platform, database, lines) for lines in SIZES}
    shown = "; ".join(f"{lines}: job {job}, finish {finish}" for lines, (job, finish) in took.items())
    most, *_, fewest = SIZES
    for stage, bound in enumerate((JOB_MEGABYTES_MAX, FINISH_MEGABYTES_MAX)):
        assert took[most][stage].megabytes < bound, shown
        a_line = [took[lines][stage].cpu_seconds / lines for lines in (fewest, most)]
        assert a_line[1] / a_line[0] <= FLAT_RATIO, shown
    assert took[most][0].megabytes - took[fewest][0].megabytes < FLAT_MEGABYTES, shown
