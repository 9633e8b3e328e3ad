"""Accepting a batch."""

import pytest
from sqlalchemy import func, select

from gridline.batches.states import Status
from gridline.batches.tables import Batch, BatchEvent, RunRequest
from gridline.clock import unix
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import Conflict, InvalidRequest, LimitExceeded, NotFound
from tests.gridline.batches.bench import Bench
from tests.racing import together


def test_create_writes_batch_event_run_request_and_slot_together(bench: Bench) -> None:
    """An accepted batch is validating, waits as 'starting', has one run request and takes one slot."""
    batch = bench.create()
    with unit_of_work() as work:
        assert batch.status == Status.VALIDATING
        assert batch.reason_code == "starting"
        assert work.session.scalars(select(RunRequest.kind)).all() == ["start"]
        assert work.session.scalars(select(BatchEvent.kind)).all() == ["created"]
        assert work.session.get_one(Account, bench.account_id).open_batches == 1


@pytest.mark.parametrize(("window", "hours", "start_hours"), [("24h", 24, 12), ("72h", 72, 48)])
def test_windows_fix_the_deadlines(bench: Bench, window: str, hours: int, start_hours: int) -> None:
    """expires_at and the start bound are exact to the second."""
    batch = bench.create(window=window)
    assert unix(batch.expires_at) - unix(batch.created_at) == hours * 3600
    assert unix(batch.start_by) - unix(batch.created_at) == start_hours * 3600


def test_third_open_batch_is_refused_and_leaves_nothing(bench: Bench) -> None:
    """At the limit of two a create answers with limit and use, and makes no batch and no run request."""
    bench.create()
    bench.create()
    with pytest.raises(LimitExceeded) as refusal:
        bench.create()
    assert refusal.value.limit == {"name": "open_batches", "limit": 2, "current": 2}
    with unit_of_work() as work:
        assert work.session.scalar(select(func.count()).select_from(Batch)) == 2
        assert work.session.scalar(select(func.count()).select_from(RunRequest)) == 2


@pytest.mark.thorough
def test_fifty_creates_at_once_take_exactly_two_slots(bench: Bench) -> None:
    """A limit of two holds however many creates race for it."""
    file_id = bench.file()
    answers = together(50, lambda: bench.create(file_id=file_id))
    assert [isinstance(answer, Batch) for answer in answers].count(True) == 2
    assert [isinstance(answer, LimitExceeded) for answer in answers].count(True) == 48


def test_same_key_and_body_find_the_first_batch(bench: Bench) -> None:
    """A repeated create with its key returns the first batch, also when no slot is left."""
    file_id = bench.file()
    first = bench.create(key="k", file_id=file_id)
    bench.create()
    assert bench.create(key="k", file_id=file_id).id == first.id


def test_same_key_with_another_body_is_a_conflict(bench: Bench) -> None:
    """A key names one body for 24 hours."""
    bench.create(key="k", file_id=bench.file())
    with pytest.raises(Conflict, match="another body"):
        bench.create(key="k", file_id=bench.file())


def test_key_is_free_again_after_24_hours(bench: Bench) -> None:
    """After a day the key makes a new batch."""
    file_id = bench.file()
    first = bench.create(key="k", file_id=file_id)
    bench.clock.advance(hours=24, seconds=1)
    assert bench.create(key="k", file_id=file_id).id != first.id


def test_unknown_file_is_not_found_and_takes_no_slot(bench: Bench) -> None:
    """A create that names no file of the account is a 404 and holds nothing."""
    with pytest.raises(NotFound):
        bench.create(file_id="file-000000000000000000000000")
    with unit_of_work() as work:
        assert work.session.get_one(Account, bench.account_id).open_batches == 0


def test_result_file_is_no_input(bench: Bench) -> None:
    """A batch reads only files uploaded for batches."""
    with pytest.raises(InvalidRequest, match="purpose"):
        bench.create(file_id=bench.file(purpose="batch_output"))
