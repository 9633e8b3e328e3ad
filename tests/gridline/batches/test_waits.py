"""Waits: stored with each change, told from the events."""

from datetime import timedelta

from gridline.batches import events, moves, waits
from gridline.batches.reasons import ReasonCode
from gridline.batches.states import Status
from gridline.batches.tables import Batch
from gridline.batches.waits import Wait
from gridline.db.work import unit_of_work
from tests.gridline.batches.bench import Bench


def say(batch: Batch, code: ReasonCode | None) -> bool:
    with unit_of_work() as work:
        return waits.set_reason(work, moves.locked(work, batch.id), code)


def history(batch: Batch) -> list[Wait]:
    with unit_of_work() as work:
        return waits.history(events.timeline(work, account_id=batch.account_id, batch_id=batch.id))


def test_every_wait_has_its_beginning_and_end(bench: Bench) -> None:
    """From the creation on, oldest first; a wait that lasts has no end, and running is no wait."""
    batch = bench.create()
    at = [bench.clock.now() + timedelta(minutes=minute) for minute in range(5)]
    bench.clock.advance(minutes=1)
    assert say(batch, ReasonCode.GRIDLINE_CAPACITY)
    bench.clock.advance(minutes=1)
    assert not say(batch, ReasonCode.GRIDLINE_CAPACITY)
    assert say(batch, None)
    bench.clock.advance(minutes=1)
    assert say(batch, ReasonCode.RETRYING)
    lasting = [
        Wait("starting", at[0], at[1]), Wait("gridline_capacity", at[1], at[2]), Wait("retrying", at[3], None)
    ]  # fmt: skip
    assert history(batch) == lasting
    bench.clock.advance(minutes=1)
    with unit_of_work() as work:
        moves.move(work, moves.locked(work, batch.id), Status.FAILED)
    assert history(batch) == [*lasting[:2], Wait("retrying", at[3], at[4])]


def test_no_wait_is_negative(bench: Bench) -> None:
    """A clock that was set back an hour makes a wait of no length, and leaves the batch's timestamps in order."""
    batch = bench.create()
    bench.clock.advance(hours=-1)
    say(batch, ReasonCode.VALIDATING_FILE)
    with unit_of_work() as work:
        moved = moves.locked(work, batch.id)
        moves.move(work, moved, Status.IN_PROGRESS)
        bench.clock.advance(hours=-1)
    with unit_of_work() as work:
        moved = moves.locked(work, batch.id)
        moves.move(work, moved, Status.CANCELLING)
        moves.move(work, moved, Status.CANCELLED)
        assert (
            moved.created_at
            == moved.in_progress_at
            == moved.cancelling_at
            == moved.cancelled_at
            == moved.ended_at
        )
    assert all(one.until is not None and one.until >= one.since for one in history(batch))
