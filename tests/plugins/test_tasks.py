import importlib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gridline.capacity import attempts, waiting
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder

pytestmark = pytest.mark.airflow

CONTEXT = {"run_id": "batch_a"}
ORDER = JobOrder("spec", "batches/batch_a/parts/0002/attempts/0001-lease_x/")


@pytest.fixture
def rooms(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Our modules, with Airflow's guard against calling ``execute`` by hand off."""
    from airflow.sdk.bases import operator

    monkeypatch.setattr(operator.ExecutorSafeguard, "test_mode", True)
    names = ("jobs", "links", "operators", "sensors", "listener")
    return SimpleNamespace(**{name: importlib.import_module(f"gridline_airflow.{name}") for name in names})


@pytest.fixture
def exceptions(airflow_home: Path) -> ModuleType:
    """Airflow's exceptions."""
    return importlib.import_module("airflow.sdk.exceptions")


def sensor(rooms: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, answer: str) -> Any:
    monkeypatch.setattr(waiting, "look_for_grant", lambda batch_id: answer if batch_id == "batch_a" else None)
    return rooms.sensors.WaitForCapacity(task_id="wait_for_capacity")


def test_a_granted_batch_goes_on(rooms: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch whose grant is there goes on without deferring."""
    assert sensor(rooms, monkeypatch, "granted").execute(CONTEXT) is None


def test_a_waiting_batch_defers_on_the_stream(
    rooms: SimpleNamespace, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for its own batch, without a time-out of Airflow's: the batch's bounds are the domain's."""
    with pytest.raises(exceptions.TaskDeferred) as deferred:
        sensor(rooms, monkeypatch, "deferred").execute(CONTEXT)
    trigger = deferred.value.trigger
    assert (trigger.batch_id, trigger.partition, deferred.value.timeout) == ("batch_a", None, None)
    assert deferred.value.method_name == "execute"


@pytest.mark.parametrize("answer", ["parked", "ended"])
def test_a_parked_or_ended_batch_skips_what_follows(
    rooms: SimpleNamespace, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """The run ends; for a parked batch the keeper resumes it."""
    with pytest.raises(exceptions.AirflowSkipException, match=answer):
        sensor(rooms, monkeypatch, answer).execute(CONTEXT, event={"news": "granted"})


class Domain:
    """Answers of the domain in order, and what it was told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rooms: SimpleNamespace) -> None:
        self.begins: list[Any] = []
        self.ends: list[str] = []
        self.exits = [JobExit.DONE]
        self.told: list[Any] = []
        domain = self

        class Job:
            """Ends at once in the next way."""

            def __init__(self, order: JobOrder) -> None:
                domain.told.append(("job", order))

            def follow(self, log: Any, *, wanted: Any) -> JobExit:
                return domain.exits.pop(0)

        monkeypatch.setattr(attempts, "begin", self.begin)
        monkeypatch.setattr(attempts, "end", self.end)
        monkeypatch.setattr(rooms.jobs, "JobProcess", Job)

    def begin(self, batch_id: str, number: int) -> Any:
        """The next answer."""
        assert (batch_id, number) == ("batch_a", 2)
        return self.begins.pop(0)

    def end(self, batch_id: str, number: int, lease_id: str, job_exit: JobExit) -> str:
        """The next answer, the call noted."""
        self.told.append((batch_id, number, lease_id, job_exit))
        return self.ends.pop(0)


@pytest.fixture
def domain(rooms: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Domain:
    """The domain's and the job's stand-in."""
    return Domain(monkeypatch, rooms)


def partition(rooms: SimpleNamespace) -> Any:
    return rooms.operators.InferPartition(task_id="infer_partition", partition=2)


def test_a_partition_is_run_under_its_lease(rooms: SimpleNamespace, domain: Domain) -> None:
    """Claim, run, give the lease back with how the job ended."""
    domain.begins, domain.ends = [ORDER], ["done"]
    partition(rooms).execute(CONTEXT)
    assert domain.told == [("job", ORDER), ("batch_a", 2, "lease_x", JobExit.DONE)]


def test_without_a_grant_it_defers(rooms: SimpleNamespace, exceptions: ModuleType, domain: Domain) -> None:
    """Waiting for a grant takes no slot of the pool."""
    domain.begins = [None]
    with pytest.raises(exceptions.TaskDeferred) as deferred:
        partition(rooms).execute(CONTEXT)
    assert (deferred.value.trigger.batch_id, deferred.value.trigger.partition) == ("batch_a", 2)


def test_what_is_over_runs_nothing(rooms: SimpleNamespace, domain: Domain) -> None:
    """A partition that is done, or whose batch is cancelled or ended, starts no job, however often it is cleared."""
    domain.begins = ["over"]
    partition(rooms).execute(CONTEXT)
    assert domain.told == []


def test_a_lost_job_is_tried_again_in_the_same_task(rooms: SimpleNamespace, domain: Domain) -> None:
    """An attempt is the domain's: a crash costs no try of Airflow's."""
    domain.begins, domain.ends = [ORDER, ORDER], ["again", "over"]
    domain.exits = [JobExit.CRASHED, JobExit.STOPPED]
    partition(rooms).execute(CONTEXT)
    assert [one[3] for one in domain.told if len(one) == 4] == [JobExit.CRASHED, JobExit.STOPPED]


def test_a_job_that_cannot_start_gives_its_lease_back(
    rooms: SimpleNamespace, domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an engine environment the GPU is free again at once."""

    def missing(order: JobOrder) -> None:
        raise FileNotFoundError("python")

    monkeypatch.setattr(rooms.jobs, "JobProcess", missing)
    domain.begins, domain.ends = [ORDER], ["over"]
    partition(rooms).execute(CONTEXT)
    assert domain.told == [("batch_a", 2, "lease_x", JobExit.CRASHED)]


def test_a_killed_task_gives_its_lease_back_and_ends(
    rooms: SimpleNamespace, exceptions: ModuleType, domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped by an operator or the machine, it starts no further attempt and does not look successful."""
    task = partition(rooms)

    class Killed:
        """A job in whose midst the task is killed."""

        stopped = 0

        def __init__(self, order: JobOrder) -> None:
            pass

        def follow(self, log: Any, *, wanted: Any) -> JobExit:
            task.on_kill()
            return JobExit.STOPPED

        def stop(self) -> None:
            Killed.stopped += 1

    monkeypatch.setattr(rooms.jobs, "JobProcess", Killed)
    domain.begins, domain.ends = [ORDER], ["again"]
    with pytest.raises(exceptions.AirflowException, match="stopped"):
        task.execute(CONTEXT)
    assert domain.told == [("batch_a", 2, "lease_x", JobExit.STOPPED)]
    assert Killed.stopped == 1


def test_a_runs_tasks_lead_to_the_batchs_page(rooms: SimpleNamespace) -> None:
    """The tab on the run, and the button on its tasks, open this batch in the dashboard."""
    page = rooms.links.BatchPage().get_link(None, ti_key=SimpleNamespace(run_id="batch_a"))
    assert page.endswith("/batch?id=batch_a")
    tab = rooms.links.batch_tab()
    assert (tab["destination"], tab["href"]) == ("dag_run", page.replace("batch_a", "{RUN_ID}"))


def test_imports_are_preloaded_in_the_scheduler_only(
    rooms: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the scheduler forks workers; a module that cannot be imported does not keep it from starting."""
    imported: list[str] = []

    def note(name: str) -> None:
        imported.append(name)
        if name == "psycopg":
            raise ImportError(name)

    monkeypatch.setattr(rooms.listener.importlib, "import_module", note)
    job = type("Job", (), {})()
    monkeypatch.setattr(rooms.listener.sys, "argv", ["airflow", "triggerer"])
    rooms.listener.Preload().on_starting(job)
    assert imported == []
    monkeypatch.setattr(rooms.listener.sys, "argv", ["airflow", "scheduler"])
    rooms.listener.Preload().on_starting(job)
    assert imported == [*rooms.listener.AIRFLOW_MODULES, *rooms.listener.OUR_MODULES]


def test_every_preloaded_module_exists(rooms: SimpleNamespace) -> None:
    """A renamed module would silently be imported by every task again."""
    names = [*rooms.listener.AIRFLOW_MODULES, *rooms.listener.OUR_MODULES]
    assert [name for name in names if importlib.util.find_spec(name) is None] == []
