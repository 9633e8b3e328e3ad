from datetime import UTC, datetime, timedelta

import pytest

from gridline.keeper.airflow import Run
from gridline.keeper.errors import AirflowAway, RunNotFound
from tests.gridline.keeper.fake_airflow import FakeAirflow

CREATED = datetime(2026, 1, 5, 12, 0, 0, 123456, tzinfo=UTC)


def test_a_run_is_started_at_its_batches_creation(fake: FakeAirflow) -> None:
    """The run's id is the batch's and its logical date the batch's creation, to the microsecond."""
    fake.client().start_run("batch_a", CREATED, note="hello")
    assert fake.runs["batch_a"]["logical_date"] == "2026-01-05T12:00:00.123456+00:00"
    assert fake.runs["batch_a"]["note"] == "hello"


def test_a_started_run_is_not_started_twice(fake: FakeAirflow) -> None:
    """Starting again finds the run that stands and makes no second one."""
    client = fake.client()
    for _ in range(3):
        client.start_run("batch_a", CREATED, note="")
    assert list(fake.runs) == ["batch_a"]


def test_a_date_that_is_taken_moves_by_a_microsecond(fake: FakeAirflow) -> None:
    """Batches of the same microsecond each get a run: a 409 counts as started only if a GET finds the run."""
    client = fake.client()
    for name in ("batch_a", "batch_b", "batch_c"):
        client.start_run(name, CREATED, note="")
    dates = [datetime.fromisoformat(run["logical_date"]) for run in fake.runs.values()]
    assert dates == [CREATED + timedelta(microseconds=step) for step in range(3)]


def test_the_token_is_kept_and_renewed_when_refused(fake: FakeAirflow) -> None:
    """One token serves many calls; after a 401 a new one is fetched and the call is made again."""
    client = fake.client()
    for _ in range(5):
        client.get_run("batch_a")
    assert fake.token_calls == 1
    fake.tokens = []
    assert client.get_run("batch_a") is None
    assert fake.token_calls == 2


@pytest.mark.parametrize("status", [500, 503, 404, 403, 400])
def test_what_asking_later_may_heal_is_airflow_away(fake: FakeAirflow, status: int) -> None:
    """A failing Airflow, one that does not know the DAG yet, and one with an import error are all away for now."""
    fake.broken = status
    with pytest.raises(AirflowAway, match=str(status)):
        fake.client().start_run("batch_a", CREATED, note="")


def test_no_connection_is_airflow_away(fake: FakeAirflow) -> None:
    """A refused connection is Airflow away, and the password is not in the message."""
    fake.away = True
    with pytest.raises(AirflowAway) as caught:
        fake.client().get_run("batch_a")
    assert "secret" not in caught.value.message


def test_clearing_lets_the_same_run_go_on(fake: FakeAirflow) -> None:
    """The task and all after it are cleared for real, and the run is put back into the queue."""
    fake.run("batch_a", "success")
    fake.client().clear_from("batch_a", "wait_for_capacity")
    ((run_id, body),) = fake.cleared
    assert run_id == "batch_a"
    assert (body["task_ids"], body["include_downstream"]) == (["wait_for_capacity"], True)
    assert (body["dry_run"], body["only_failed"], body["reset_dag_runs"]) == (False, False, True)


def test_clearing_a_run_that_is_gone_says_so(fake: FakeAirflow) -> None:
    """A deleted run cannot go on: the caller must start a new one."""
    with pytest.raises(RunNotFound):
        fake.client().clear_from("batch_a", "wait_for_capacity")


def test_every_live_run_is_found_over_pages(fake: FakeAirflow) -> None:
    """Queued and running runs are all listed, whatever their number; ended ones are not."""
    for number in range(205):
        fake.run(f"batch_{number}", "running" if number % 2 else "queued")
    fake.run("batch_ended", "failed")
    assert fake.client().live_runs() == {f"batch_{number}" for number in range(205)}


def test_a_run_tells_whether_it_has_ended() -> None:
    """Success and failure are ends; queued and running are not."""
    assert [Run(state, None).ended for state in ("queued", "running", "success", "failed")] == [
        False, False, True, True,
    ]  # fmt: skip
