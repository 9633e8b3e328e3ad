"""The request log: from a batch's results to rows, once, and out again after their days."""

from datetime import timedelta

import pytest

from gridline.batches import finishing, logging_requests
from gridline.batches.tables import Batch
from gridline.clock import Days, FrozenClock
from gridline.db.work import unit_of_work
from gridline.keeper.request_log import log_requests
from gridline.keeper.retention import purge_batches
from gridline.ledger.tables import Resolution
from gridline.storage import layout
from gridline.storage.objects import Store
from gridline.usage import request_log
from gridline.usage.tables import LoggedBatch, LoggedRequest
from tests.dialects import speak
from tests.gridline.batches.bench import Bench
from tests.gridline.ledger.bench import at_once


@pytest.fixture
def ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> str:
    """A batch of three lines in a dialect with a log: two delivered, the third never ran, since its deadline came."""
    speak(monkeypatch, "gridport")
    made = bench.held(lines=(3,))
    bench.claim(made, 0, lease=f"lease-{made.id}", state="running")
    bench.segment(made, 0, [0, 1], lease=f"lease-{made.id}")
    with unit_of_work() as work:
        work.session.get_one(Batch, made.id).any_line_ran = True
    bench.clock.moment = made.expires_at
    assert finishing.finish(made.id, run_over=True) == "expired"
    return made.id


def rows(batch_id: str) -> list[LoggedRequest]:
    """The batch's rows, in input order."""
    with unit_of_work() as work:
        return (
            work.session.query(LoggedRequest)
            .filter_by(batch_id=batch_id)
            .order_by(LoggedRequest.number)
            .all()
        )


def test_each_line_has_a_row_with_its_outcome_and_cost(ended: str, bench: Bench) -> None:
    """Delivered lines carry tokens and cost, which add up to the charge; one that never ran has its code and costs nothing."""
    assert log_requests() == 1
    first, second, third = rows(ended)
    assert [one.number for one in (first, second, third)] == [0, 1, 2]
    assert (first.status_code, first.code) == (200, None)
    assert first.cost_nanos > 0
    assert (third.status_code, third.code, third.cost_nanos, third.model) == (None, "batch_expired", 0, "")
    with unit_of_work() as work:
        batch = work.session.get_one(Batch, ended)
        assert {one.at for one in (first, second, third)} == {batch.ended_at}
        assert sum(one.cost_nanos for one in (first, second, third)) == (
            work.session.get_one(Resolution, ended).charged_nanos
        )
        assert (first.input_tokens + second.input_tokens, first.output_tokens + second.output_tokens) == (
            batch.input_tokens,
            batch.output_tokens,
        )


def test_a_batch_is_logged_once_however_many_try(ended: str) -> None:
    """Four at once and once more: one of them did it."""
    assert sorted(at_once(4, lambda _: logging_requests.log_batch(ended))) == [False, False, False, True]
    assert log_requests() == 0
    assert len(rows(ended)) == 3


def test_a_dialect_without_a_log_writes_none(bench: Bench) -> None:
    """Nothing is copied, whatever the results have beside them."""
    made = bench.held(lines=(1,))
    bench.claim(made, 0, lease="lease-a", state="done")
    bench.segment(made, 0, [0], lease="lease-a")
    assert finishing.finish(made.id, run_over=True) == "completed"
    assert log_requests() == 0
    assert rows(made.id) == []


def test_objects_are_not_deleted_before_they_are_logged(ended: str, clock: FrozenClock, store: Store) -> None:
    """A keeper that was away for a day logs what it deletes."""
    clock.moment += timedelta(days=2)
    assert purge_batches() == 1
    assert store.read_or_none(layout.requests_key(ended)) is None
    assert len(rows(ended)) == 3


def test_rows_are_forgotten_after_their_days(ended: str, bench: Bench, clock: FrozenClock) -> None:
    """Rows stay to the last day that the dialect promises, then those of every batch go in one step, and none comes again."""
    other = bench.held(lines=(1,))
    bench.claim(other, 0, lease="lease-b", state="done")
    bench.segment(other, 0, [0], lease="lease-b")
    assert finishing.finish(other.id, run_over=True) == "completed"
    assert log_requests() == 2
    clock.moment += timedelta(days=30)
    log_requests()
    assert len(rows(ended)) == 3
    clock.moment += timedelta(seconds=1)
    assert log_requests() == 0
    assert rows(ended) == rows(other.id) == []
    with unit_of_work() as work:
        assert work.session.query(LoggedBatch).count() == 0


def test_pages_go_on_where_they_ended(ended: str, bench: Bench) -> None:
    """By batch and by day, each row once and in order; another account's day is empty."""
    log_requests()
    with unit_of_work() as work:
        day = Days.of(work.session.get_one(Batch, ended).ended_at or work.now)
        one, more = request_log.of_day(work, bench.account_id, day, after=None, limit=2)
        rest, no_more = request_log.of_day(
            work, bench.account_id, day, after=request_log.request_id(one[-1]), limit=2
        )
        assert ([row.number for row in [*one, *rest]], more, no_more) == ([0, 1, 2], True, False)
        of_batch, _ = request_log.of_batch(
            work, bench.account_id, ended, after=request_log.request_id(one[0]), limit=5
        )
        assert [row.number for row in of_batch] == [1, 2]
        assert request_log.of_day(work, "acct_other", day, after=None, limit=5) == ([], False)
