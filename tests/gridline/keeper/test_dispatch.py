from datetime import timedelta

from sqlalchemy import select

from gridline.batches import moves
from gridline.batches.tables import RunRequest
from gridline.capacity.allocator import allocate
from gridline.db.work import unit_of_work
from gridline.keeper.dispatch import dispatch
from gridline.keeper.notes import Notes
from tests.gridline.capacity.yard import Yard
from tests.gridline.keeper.fake_airflow import FakeAirflow
from tests.racing import together


def ask(batch_id: str, kind: str = "start", from_task: str | None = None) -> None:
    with unit_of_work() as work:
        moves.request_run(work, moves.locked(work, batch_id), kind, from_task=from_task)


def waiting() -> list[str]:
    with unit_of_work() as work:
        return list(work.session.scalars(select(RunRequest.batch_id).where(RunRequest.done_at.is_(None))))


def test_a_due_start_becomes_a_run(yard: Yard, fake: FakeAirflow) -> None:
    """The run is started under the batch's id, its note leads to the batch's page, and it is asked for once."""
    batch = yard.batch(yard.account("a"))
    ask(batch)
    assert dispatch(fake.client()) == 1
    assert f"/batch?id={batch}" in fake.runs[batch]["note"]
    assert waiting() == []
    assert dispatch(fake.client()) == 0


def test_while_airflow_is_away_the_row_waits(yard: Yard, fake: FakeAirflow) -> None:
    """No request is lost while Airflow is away, and each is asked again later and later, 30 s at most."""
    batch = yard.batch(yard.account("a"))
    ask(batch)
    fake.away = True
    for _ in range(8):
        assert dispatch(fake.client()) == 0
        assert waiting() == [batch]
        yard.clock.advance(seconds=30)
    (request,) = yard.resumes()
    assert request.not_before - yard.clock.now() <= timedelta(seconds=30)
    fake.away = False
    assert dispatch(fake.client()) == 1


def test_a_clock_that_is_set_back_holds_up_no_run(yard: Yard, fake: FakeAirflow) -> None:
    """A request from before an hour's step back is due at once, one that was put off comes with its back-off."""
    batch = yard.batch(yard.account("a"))
    ask(batch)
    yard.clock.advance(hours=-1)
    assert dispatch(fake.client()) == 1


def test_accounts_take_turns(yard: Yard, fake: FakeAirflow) -> None:
    """An account with many batches does not hold up another's first."""
    many, few = yard.account("many"), yard.account("few")
    crowd = [yard.batch(many) for _ in range(6)]
    late = yard.batch(few)
    for batch in [*crowd, late]:
        ask(batch)
    dispatch(fake.client())
    assert list(fake.runs).index(late) == 1


def test_two_keepers_ask_once(yard: Yard, fake: FakeAirflow) -> None:
    """Dispatchers at the same time start each run once."""
    batches = [yard.batch(yard.account(f"a{number}")) for number in range(5)]
    for batch in batches:
        ask(batch)
    accepted = together(4, lambda: dispatch(fake.client()))
    assert sum(one for one in accepted if isinstance(one, int)) == 5
    assert sorted(fake.runs) == sorted(batches)


def test_a_batch_that_is_ending_gets_no_run(yard: Yard, fake: FakeAirflow) -> None:
    """A batch cancelled before its start needs no run; its request is done."""
    batch = yard.batch(yard.account("a"))
    ask(batch)
    yard.cancel(batch)
    dispatch(fake.client())
    assert (fake.runs, waiting()) == ({}, [])


def test_a_parked_batch_goes_on_in_its_own_run(yard: Yard, fake: FakeAirflow) -> None:
    """A grant resumes the same run from the waiting task, and only then does the grant's clock start."""
    batch = yard.batch(yard.account("a"), waiting="parked")
    fake.run(batch, "success")
    allocate()
    (grant,) = yard.leases(live=True)
    assert grant.claim_by is None
    yard.clock.advance(minutes=10)
    assert dispatch(fake.client()) == 1
    assert [(run, body["task_ids"]) for run, body in fake.cleared] == [(batch, ["wait_for_capacity"])]
    (grant,) = yard.leases(live=True)
    assert grant.claim_by == yard.clock.now() + timedelta(seconds=60)


def test_a_run_that_is_still_ending_is_resumed_a_moment_later(yard: Yard, fake: FakeAirflow) -> None:
    """Clearing a run that has not ended would race its teardown: it is asked again after a second."""
    batch = yard.batch(yard.account("a"), waiting="parked")
    fake.run(batch, "running")
    allocate()
    assert dispatch(fake.client()) == 0
    assert fake.cleared == []
    fake.run(batch, "success")
    yard.clock.advance(seconds=1)
    assert dispatch(fake.client()) == 1
    assert len(fake.cleared) == 1


def test_a_batch_that_left_its_place_meanwhile_is_resumed_all_the_same(yard: Yard, fake: FakeAirflow) -> None:
    """A late task may see the request before Airflow hears of it: the ended run goes on, a live one is left alone."""
    batch = yard.batch(yard.account("a"), waiting="parked")
    fake.run(batch, "success")
    allocate()
    yard.change(batch, waiting=None)
    assert dispatch(fake.client()) == 1
    assert len(fake.cleared) == 1
    fake.run(batch, "running")
    ask(batch, "resume", "wait_for_capacity")
    assert dispatch(fake.client()) == 1
    assert len(fake.cleared) == 1


def test_a_deleted_run_is_started_anew_to_resume(yard: Yard, fake: FakeAirflow) -> None:
    """A parked batch whose run was deleted still goes on once it is granted."""
    batch = yard.batch(yard.account("a"), waiting="parked")
    allocate()
    assert dispatch(fake.client()) == 1
    assert fake.runs[batch]["state"] == "queued"


def test_one_request_that_fails_holds_up_nobody(yard: Yard, fake: FakeAirflow) -> None:
    """A run that Airflow refuses waits by itself; the requests behind it are served in the same pass."""
    first, second = yard.batch(yard.account("a")), yard.batch(yard.account("b"))
    ask(first)
    ask(second)
    client = fake.client()
    start = client.start_run

    def refuse_first(batch_id: str, *args: object, **kwargs: object) -> None:
        fake.broken = 500 if batch_id == first else None
        start(batch_id, *args, **kwargs)  # type: ignore[arg-type]

    client.start_run = refuse_first  # type: ignore[method-assign]
    assert dispatch(client) == 1
    assert waiting() == [first]


def test_a_parked_run_says_why_once(yard: Yard, fake: FakeAirflow) -> None:
    """The ended run's note names the reason and the page, and is written again only when the wait changes."""
    first, second = (
        yard.batch(yard.account("a"), waiting="deferred"),
        yard.batch(yard.account("b"), waiting="parked"),
    )
    for batch in (first, second):
        fake.run(batch, "success")
    allocate()
    notes = Notes()
    assert notes.write(fake.client()) == 1
    assert "gridline_capacity" in fake.runs[second]["note"]
    assert f"/batch?id={second}" in fake.runs[second]["note"]
    assert fake.runs[first]["note"] is None
    assert notes.write(fake.client()) == 0
