from typing import Any

import pytest

from gpu_jobs.pacing import lines_at_once, weight
from tests.gpu_jobs.conftest import Partition


def line(tokens: int = 10, **body: Any) -> int:
    return weight({"messages": [], **body}, tokens)


@pytest.mark.parametrize(
    ("one", "at_once"),
    [
        (line(max_tokens=16), 128),
        (line(max_tokens=1024), 32),
        (line(max_completion_tokens=1024), 32),
        (line(), 32),
        (line(8_000, max_tokens=1024), 32),
        (line(100, max_tokens=256), 122),
        (line(100, max_tokens=128, n=2), 122),
        (line(4_096, max_tokens=1), 63),
        (weight({"input": "x"}, 200), 128),
    ],
)
def test_light_lines_fly_together(one: int, at_once: int) -> None:
    """As many as are no more work than the fewest heavy ones, between the fewest and the most."""
    assert lines_at_once([one] * 200, fewest=32, most=128) == at_once


def test_the_heaviest_lines_decide() -> None:
    """A few heavy lines among light ones take their part of the room, and no lines at all are no trouble."""
    lines = [line(0, max_tokens=1024)] * 20 + [line(0, max_tokens=128)] * 200
    assert lines_at_once(lines, fewest=32, most=256) == 20 + 12 * 8
    assert lines_at_once([], fewest=32, most=128) == 32


@pytest.mark.programs
def test_a_job_fills_the_engine_with_light_lines(partition: Partition) -> None:
    """More light lines than the fewest are in flight at one time, never more than the engine runs at once."""
    message = {"role": "user", "content": "!sleep=1"}
    partition.write([], bodies=[{"messages": [message], "max_tokens": 4}] * 160)
    partition.run()
    assert 100 < max(one["flying"] for one in partition.journalled()) <= 128
