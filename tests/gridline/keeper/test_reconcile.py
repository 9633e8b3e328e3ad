import pytest

from gridline.batches import finishing, moves
from gridline.batches.tables import RunRequest
from gridline.db.work import unit_of_work
from gridline.keeper.credit import resume_funded
from gridline.keeper.reconcile import STARTS_MAX, reconcile
from gridline.ledger import posting
from tests.gridline.capacity.yard import Yard
from tests.gridline.keeper.fake_airflow import FakeAirflow


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """What ``finish`` was called for (that it ends batches rightly is its own tests' promise)."""
    calls: list[tuple[str, bool]] = []

    def finish(batch_id: str, *, run_over: bool) -> str:
        calls.append((batch_id, run_over))
        return "failed"

    monkeypatch.setattr(finishing, "finish", finish)
    return calls


def starts(yard: Yard) -> list[RunRequest]:
    return [one for one in yard.resumes() if one.kind == "start"]


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_batch_with_a_live_run_is_left_alone(
    yard: Yard, fake: FakeAirflow, finished: list[tuple[str, bool]], state: str
) -> None:
    """While its run lives, the run ends the batch."""
    fake.run(yard.batch(yard.account("a")), state)
    assert reconcile(fake.client()) == 0
    assert finished == []


@pytest.mark.parametrize("state", ["success", "failed"])
def test_a_batch_whose_run_has_ended_is_finished(
    yard: Yard, fake: FakeAirflow, finished: list[tuple[str, bool]], state: str
) -> None:
    """A run that ended without ending its batch, in whatever state, is made good."""
    batch = yard.batch(yard.account("a"))
    fake.run(batch, state)
    assert reconcile(fake.client()) == 1
    assert finished == [(batch, True)]


def test_a_deleted_run_ends_its_batch(
    yard: Yard, fake: FakeAirflow, finished: list[tuple[str, bool]]
) -> None:
    """A batch that was validated and whose run an operator deleted is finished, not run again."""
    batch = yard.batch(yard.account("a"))
    yard.change(batch, validated_at=yard.clock.now())
    assert reconcile(fake.client()) == 1
    assert finished == [(batch, True)]


def test_a_run_that_vanished_before_validation_is_started_again(
    yard: Yard, fake: FakeAirflow, finished: list[tuple[str, bool]]
) -> None:
    """Nothing was done yet, so it simply starts anew, a few times at most; then the batch is ended."""
    batch = yard.batch(yard.account("a"))
    yard.change(batch, validated_at=None)
    for _ in range(STARTS_MAX + 2):
        reconcile(fake.client())
        with unit_of_work() as work:
            for request in work.session.query(RunRequest):
                request.done_at = work.now
    assert len(starts(yard)) == STARTS_MAX
    assert finished == [(batch, True)] * 2


def test_parked_batches_and_those_still_to_start_have_no_run_on_purpose(
    yard: Yard, fake: FakeAirflow, finished: list[tuple[str, bool]]
) -> None:
    """A parked batch's run has ended, and one in the outbox has none yet: both are as they should be."""
    fake.run(yard.batch(yard.account("a"), waiting="parked"), "success")
    fresh = yard.batch(yard.account("b"))
    with unit_of_work() as work:
        moves.request_run(work, moves.locked(work, fresh), "start")
    assert reconcile(fake.client()) == 0
    assert finished == []


def test_nobody_waits_inside_airflow_for_a_run_that_is_over(yard: Yard, fake: FakeAirflow) -> None:
    """A deferred batch whose run was marked failed ends, and its place among the deferred is free again."""
    batch = yard.batch(yard.account("a"), waiting="deferred")
    yard.change(batch, validated_at=yard.clock.now())
    fake.run(batch, "failed")
    assert reconcile(fake.client()) == 1
    row = yard.row(batch)
    assert (row.status, row.error_code, row.waiting) == ("failed", "server_error", None)


def credit_wait(yard: Yard, account: str, ceiling: int) -> str:
    """A batch that is parked for credit."""
    batch = yard.batch(account, waiting="parked", held=False)
    yard.change(batch, reason_code="customer_credit", ceiling_nanos=ceiling, status="validating")
    return batch


def test_credit_resumes_what_it_covers(yard: Yard) -> None:
    """Oldest first, and never more than the credit covers together; each is asked for once."""
    account = yard.account("a")
    first, second, third = (
        credit_wait(yard, account, ceiling) for ceiling in (6 * 10**11, 6 * 10**11, 10**11)
    )
    assert resume_funded() == 2
    assert [(one.batch_id, one.from_task) for one in yard.resumes()] == [
        (first, "hold_credits"), (third, "hold_credits"),
    ]  # fmt: skip
    assert resume_funded() == 0
    with unit_of_work() as work:
        posting.grant(work, account, 10**12, actor="operator", why="top-up", key="more")
    assert resume_funded() == 1
    assert yard.resumes()[-1].batch_id == second
