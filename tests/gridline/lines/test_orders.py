import pytest

from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder


def test_order_comes_back() -> None:
    """An order read is the order given."""
    order = JobOrder("s", "p/", ("e/", "f/"), 17)
    assert JobOrder.from_json(order.to_json()) == order
    assert JobOrder.from_json(JobOrder("s", "p/").to_json()) == JobOrder("s", "p/", (), None)


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (0, JobExit.DONE),
        (3, JobExit.STOPPED),
        (4, JobExit.ENGINE_UNHEALTHY),
        (-9, JobExit.CRASHED),
        (137, JobExit.CRASHED),
    ],
)
def test_exit_codes(code: int, meaning: JobExit) -> None:
    """Every exit code has a meaning; an unknown one or a signal is a crash."""
    assert JobExit.of(code) is meaning
