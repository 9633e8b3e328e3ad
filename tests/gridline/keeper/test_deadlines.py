import json

import pytest

from gridline.batches import finishing
from gridline.batches.states import Status
from gridline.capacity.allocator import allocate
from gridline.keeper import deadlines
from gridline.keeper.deadlines import Deadlines
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.storage import layout
from tests.gridline.capacity.yard import Yard


class Seconds:
    """A monotonic clock that tests move."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """The seconds now."""
        return self.now


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """What ``finish`` was called for (that it ends batches rightly is its own tests' promise)."""
    calls: list[tuple[str, bool]] = []

    def finish(batch_id: str, *, run_over: bool) -> str:
        calls.append((batch_id, run_over))
        return Status.CANCELLED

    monkeypatch.setattr(finishing, "finish", finish)
    return calls


def stop_reason(yard: Yard, order: JobOrder) -> str | None:
    data = yard.store.read_or_none(layout.stop_key(order.attempt_prefix))
    return None if data is None else str(json.loads(data)["reason"])


@pytest.fixture
def batch(yard: Yard) -> str:
    """A batch with one granted partition."""
    made = yard.batch(yard.account("a"))
    allocate()
    return made


def test_a_batch_within_its_bounds_is_left_alone(
    yard: Yard, batch: str, finished: list[tuple[str, bool]]
) -> None:
    """A batch that may still start, or runs before its deadline, is neither stopped nor finished."""
    order = yard.begin(batch)
    assert Deadlines().enforce() == 0
    assert (stop_reason(yard, order), finished) == (None, [])


def test_a_cancelled_batch_is_stopped_then_finished(
    yard: Yard, batch: str, finished: list[tuple[str, bool]]
) -> None:
    """Its jobs are told to stop at once, and it ends when the last one has given its lease back."""
    order = yard.begin(batch)
    yard.cancel(batch)
    keeper = Deadlines()
    keeper.enforce()
    assert (stop_reason(yard, order), finished) == ("cancel", [])
    yard.end(batch, order, JobExit.STOPPED)
    assert keeper.enforce() == 1
    assert finished == [(batch, False)]


def test_a_cancelled_batch_without_a_job_ends_at_once(
    yard: Yard, batch: str, finished: list[tuple[str, bool]]
) -> None:
    """A grant that nobody claimed holds up no cancel."""
    yard.cancel(batch)
    Deadlines().enforce()
    assert finished == [(batch, False)]


def test_a_job_that_does_not_stop_is_not_waited_for_for_ever(
    yard: Yard, batch: str, finished: list[tuple[str, bool]]
) -> None:
    """A job that ignores its stop marker holds up its batch's end for a minute, not more."""
    yard.begin(batch)
    yard.cancel(batch)
    seconds = Seconds()
    keeper = Deadlines(monotonic=seconds)
    keeper.enforce()
    seconds.now += deadlines.PATIENCE_SECONDS
    keeper.enforce()
    assert finished == []
    seconds.now += 1
    keeper.enforce()
    assert finished == [(batch, False)]


def test_past_its_deadline_a_batch_is_stopped(
    yard: Yard, batch: str, finished: list[tuple[str, bool]]
) -> None:
    """A batch that still runs when its window closes is stopped as expired."""
    yard.change(batch, any_line_ran=True)
    order = yard.begin(batch)
    yard.clock.moment = yard.row(batch).expires_at
    keeper = Deadlines()
    keeper.enforce()
    assert stop_reason(yard, order) == "deadline"
    yard.end(batch, order, JobExit.STOPPED)
    keeper.enforce()
    assert finished == [(batch, False)]


def test_until_a_line_ran_the_start_bound_counts(
    yard: Yard, batch: str, finished: list[tuple[str, bool]]
) -> None:
    """A lease alone is no start: at the start bound a batch without a line is stopped, one with a line goes on."""
    order = yard.begin(batch)
    yard.clock.moment = yard.row(batch).start_by
    yard.change(batch, any_line_ran=True)
    Deadlines().enforce()
    assert stop_reason(yard, order) is None
    yard.change(batch, any_line_ran=False)
    Deadlines().enforce()
    assert stop_reason(yard, order) == "deadline"


def test_a_batch_that_cannot_be_finished_holds_up_no_other(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One whose end raises is logged and tried again; those behind it end in the same step."""
    first, second = (yard.batch(yard.account(name)) for name in "ab")
    real = finishing.finish

    def finish(batch_id: str, *, run_over: bool) -> str:
        if batch_id == first:
            raise ValueError("broken")
        return real(batch_id, run_over=run_over)

    yard.clock.moment = yard.row(first).start_by
    keeper = Deadlines()
    with monkeypatch.context() as patch:
        patch.setattr(finishing, "finish", finish)
        assert keeper.enforce() == 1
    assert (yard.row(first).status, yard.row(second).status) == ("validating", "failed")
    assert first in caplog.text
    assert keeper.enforce() == 1


def test_a_batch_that_never_started_ends_failed(yard: Yard) -> None:
    """At the start bound a batch that got no GPU fails with ``capacity_unavailable`` and its hold returns."""
    batch = yard.batch(yard.account("a"), waiting="parked")
    yard.clock.moment = yard.row(batch).start_by
    assert Deadlines().enforce() == 1
    row = yard.row(batch)
    assert (row.status, row.error_code) == ("failed", "capacity_unavailable")
