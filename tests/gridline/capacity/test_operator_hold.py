"""An operator's hold: no new grant, a reason with its note, and everything else as it was."""

import pytest
from sqlalchemy import select

from gridline import limits
from gridline.batches import endings, events, reading
from gridline.batches.tables import BatchEvent
from gridline.capacity import attempts, operator_hold
from gridline.capacity.allocator import allocate
from gridline.capacity.waiting import look_for_grant
from gridline.customers.tables import Audit
from gridline.db.work import unit_of_work
from gridline.errors import Conflict, InvalidRequest, NotFound
from gridline.lines.exits import JobExit
from tests.gridline.capacity.yard import Yard

NOTE = "We look at your file until 15:00 UTC."
ACTOR = "operator:ada"


def hold(batch_id: str, note: str = NOTE) -> bool:
    with unit_of_work() as work:
        return operator_hold.hold(work, batch_id, note=note, actor=ACTOR)


def release(batch_id: str) -> bool:
    with unit_of_work() as work:
        return operator_hold.release(work, batch_id, actor=ACTOR)


def kinds(yard: Yard, batch_id: str) -> list[tuple[str, str]]:
    """What happened to a batch, and by whom."""
    with unit_of_work() as work:
        found = events.timeline(work, account_id=yard.row(batch_id).account_id, batch_id=batch_id)
        return [(one.kind, one.actor) for one in found]


def audited() -> list[tuple[str, str]]:
    with unit_of_work() as work:
        rows = work.session.execute(select(Audit.action, Audit.actor).order_by(Audit.sequence))
        return [(row.action, row.actor) for row in rows if row.action.startswith("batch.")]


def test_a_held_batch_gets_no_grant(yard: Yard) -> None:
    """The GPU goes to the next batch; the held one keeps its status and says why, with the note, in its reason."""
    first = yard.batch(yard.account("a"))
    yard.clock.advance(minutes=1)
    second = yard.batch(yard.account("b"))
    assert hold(first)
    yard.gpus(2)
    assert allocate() == 1
    assert [one.batch_id for one in yard.leases()] == [second]
    row = yard.row(first)
    assert (row.status, row.reason_code, row.reason_since) == (
        "validating", "held_by_operator", yard.clock.now(),
    )  # fmt: skip
    with unit_of_work() as work:
        shown = reading.show(work, account_id=row.account_id, batch_id=first)["gridline"]
    assert shown["reason"] == f"An operator holds this batch: {NOTE}"
    assert shown["reason_code"] == "held_by_operator"
    assert "time limits go on" in shown["next_step"]


def test_release_wakes_it_at_once_and_the_true_reason_returns(yard: Yard) -> None:
    """What it waited for before shows again, and a free GPU is its own at the next look."""
    yard.gpus(0)
    batch = yard.batch(yard.account("a"))
    allocate()
    hold(batch)
    yard.clock.advance(hours=1)
    assert release(batch)
    row = yard.row(batch)
    assert (row.status, row.reason_code, row.reason_since) == (
        "in_progress", "gridline_capacity", yard.clock.now(),
    )  # fmt: skip
    assert (row.operator_hold_at, row.operator_hold_note, row.reason_under_hold) == (None, None, None)
    yard.gpus(1)
    assert allocate() == 1


def test_running_attempts_go_on(yard: Yard) -> None:
    """A job that runs is not stopped and may end its partition; the next partition waits for the release."""
    batch = yard.batch(yard.account("a"), partitions=2)
    allocate()
    order = yard.begin(batch)
    hold(batch)
    yard.progress(order, done=10)
    assert yard.end(batch, order, JobExit.DONE) == "done"
    assert allocate() == 0
    assert yard.row(batch).reason_code == "held_by_operator"
    release(batch)
    assert allocate() == 1
    yard.begin(batch, 1)
    assert yard.row(batch).reason_code is None


def test_a_grant_that_nobody_claimed_is_taken_back(yard: Yard) -> None:
    """A hold between grant and claim starts nothing, and frees the GPU at once."""
    first, second = yard.batch(yard.account("a")), yard.batch(yard.account("b"))
    allocate()
    hold(first)
    assert attempts.begin(first, 0) is None
    assert allocate() == 1
    assert [(one.batch_id, one.outcome) for one in yard.leases()] == [(first, "unwanted"), (second, None)]


def test_a_held_batch_parks(yard: Yard) -> None:
    """It takes none of the few places inside Airflow, though they are free."""
    batch = yard.batch(yard.account("a"))
    hold(batch)
    assert look_for_grant(batch) == "parked"
    assert yard.row(batch).reason_code == "held_by_operator"


def test_twice_is_once(yard: Yard) -> None:
    """A second hold, or release, changes nothing: no event, no audit, not even another note."""
    batch = yard.batch(yard.account("a"))
    assert [hold(batch), hold(batch, "other")] == [True, False]
    assert yard.row(batch).operator_hold_note == NOTE
    assert [release(batch), release(batch)] == [True, False]
    assert kinds(yard, batch) == [
        ("waiting", "keeper"), ("operator_hold", "operator"),
        ("waiting", "keeper"), ("operator_release", "operator"),
    ]  # fmt: skip
    assert audited() == [("batch.operator_hold", ACTOR), ("batch.operator_release", ACTOR)]
    with unit_of_work() as work:
        said = work.session.scalars(
            select(BatchEvent.details).where(BatchEvent.kind == "operator_hold")
        ).one()
    assert said == {"note": NOTE}


def test_a_wait_for_credit_goes_on_under_the_hold(yard: Yard) -> None:
    """Held past its start bound, a batch that waited for credit ends for want of credit; released, it waits for it."""
    batch = yard.batch(yard.account("a"), held=False, waiting="parked", window="72h")
    yard.change(batch, reason_code="customer_credit")
    hold(batch)
    row, partitions = yard.row(batch), [yard.partition(batch)]
    assert endings.decide(row, partitions, row.start_by, run_over=False) is endings.NO_CREDIT
    release(batch)
    assert yard.row(batch).reason_code == "customer_credit"


def test_what_ends_cannot_be_held(yard: Yard) -> None:
    """A batch that is cancelling is refused in a sentence; one that was held can be cancelled."""
    first, second = yard.batch(yard.account("a")), yard.batch(yard.account("b"))
    yard.cancel(first)
    with pytest.raises(Conflict, match="cancelling"):
        hold(first)
    hold(second)
    yard.cancel(second)
    assert yard.row(second).status == "cancelling"
    with pytest.raises(NotFound):
        hold("batch_nothing")
    with pytest.raises(NotFound):
        release("batch_nothing")


@pytest.mark.parametrize("note", ["", "  ", "a\x00b", "x" * (limits.OPERATOR_NOTE_CHARS_MAX + 1)])
def test_a_note_is_a_sentence(yard: Yard, note: str) -> None:
    """An empty, endless or unprintable note is refused, and nothing is held."""
    batch = yard.batch(yard.account("a"))
    with pytest.raises(InvalidRequest, match="note"):
        hold(batch, note)
    assert yard.row(batch).operator_hold_at is None
