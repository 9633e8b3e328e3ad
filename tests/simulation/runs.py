"""Airflow in a simulated world: runs of the DAG's six tasks, whose bodies call what the real ones call.

It keeps no promise that Airflow does not keep: tasks run again, late, at once with their own second copy, or not at
all; runs are deleted, marked failed and cleared.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from gridline.batches import finishing, holding, validating
from gridline.capacity import attempts, waiting
from gridline.errors import Unavailable
from gridline.keeper.airflow import Airflow, Run
from gridline.keeper.errors import AirflowAway, RunNotFound
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from tests.simulation.faults import Crash, Faults
from tests.simulation.jobs import SimJob

STAGES = ("validate", "hold_credits", "wait_for_capacity", "infer_partition", "collate", "settle")
TRIES_MAX = 4

Key = tuple[str, int | None]
State = Literal["none", "deferred", "running", "success", "skipped", "failed"]

_ENDS: tuple[State, ...] = ("failed", "skipped", "success")
FINAL = frozenset(_ENDS)


@dataclass
class Task:
    """One task instance. ``none`` is due as soon as what stands before it is over."""

    state: State = "none"
    tries: int = 0
    job: SimJob | None = None


@dataclass
class SimRun:
    """A run: its tasks, and whether it goes on."""

    batch_id: str
    live: bool = True
    marked_failed: bool = False
    tasks: dict[Key, Task] = field(default_factory=lambda: {(name, None): Task() for name in STAGES})

    def stage(self, name: str) -> Iterator[Task]:
        """The task instances of a name: one, or one a partition."""
        return (task for (other, _), task in self.tasks.items() if other == name)

    def outcome(self, name: str) -> State | None:
        """How a stage ended; None while it has not."""
        states = {task.state for task in self.stage(name)}
        if not states <= FINAL:
            return None
        return next((one for one in _ENDS if one in states), None)

    def due(self) -> Iterator[Key]:
        """Tasks whose turn it is: none of what stands before them is under way."""
        for key, task in list(self.tasks.items()):
            before = STAGES[: STAGES.index(key[0])]
            if task.state in FINAL or any(self.outcome(name) is None for name in before):
                continue
            ready = not before or self.outcome(before[-1]) == "success"
            if key[0] != "settle" and (not ready or self.marked_failed):
                task.state = "skipped"
            elif task.job is None or task.job.over:
                yield key

    def expand(self, partitions: list[int]) -> None:
        """One ``infer_partition`` for each."""
        self.tasks.pop(("infer_partition", None), None)
        for number in partitions:
            self.tasks.setdefault(("infer_partition", number), Task())

    def clear(self, name: str) -> list[SimJob]:
        """Have this stage and all after it run again; the jobs that nobody follows any more."""
        orphans = []
        for key in list(self.tasks):
            if STAGES.index(key[0]) >= STAGES.index(name):
                orphans += [job for job in [self.tasks[key].job] if job is not None and not job.over]
                self.tasks[key] = Task()
        self.live, self.marked_failed = True, False
        return orphans


class SimAirflow(Airflow):
    """What the keeper's client offers, over runs that live here."""

    def __init__(self, faults: Faults, now: Callable[[], datetime]) -> None:
        self.runs: dict[str, SimRun] = {}
        self.away = False
        self._faults, self._now = faults, now

    def start_run(self, batch_id: str, created_at: datetime, *, note: str) -> None:
        """Start the run, or find it."""
        self._called()
        self.runs.setdefault(batch_id, SimRun(batch_id))
        self._answered()

    def get_run(self, batch_id: str) -> Run | None:
        """The run, if there is one."""
        self._called()
        run = self.runs.get(batch_id)
        return None if run is None else Run("running" if run.live else "success", None)

    def live_runs(self) -> set[str]:
        """Ids of live runs."""
        self._called()
        return {run.batch_id for run in self.runs.values() if run.live}

    def clear_from(self, batch_id: str, task_id: str) -> None:
        """Let an ended run go on from this task."""
        self._called()
        if batch_id not in self.runs:
            raise RunNotFound(f"Airflow has no run {batch_id}.")
        self.runs[batch_id].clear(task_id)
        self._answered()

    def note(self, batch_id: str, text: str) -> None:
        """Notes are not kept."""
        self._called()

    def ready(self) -> bool:
        """Whether it would run the DAG."""
        self._called()
        return True

    def _called(self) -> None:
        self._faults.pause()
        if self.away or self._faults.strike(0.02):
            raise AirflowAway("The simulated Airflow is away.")

    def _answered(self) -> None:
        if self._faults.strike(0.04):
            raise AirflowAway("The simulated Airflow's answer is lost.")


class Bodies:
    """The bodies of the DAG's tasks, as dags/batch.py and the plugin have them."""

    def __init__(self, start_job: Callable[[JobOrder], SimJob], harmed: Callable[[str], None]) -> None:
        self._start_job, self._harmed = start_job, harmed
        self.ends: list[tuple[str, int, str, JobExit | None]] = []
        """What was last said of each job's end: it may be said again, late."""

    def run(self, run: SimRun, key: Key) -> str:
        """Run one due task once; the state that it is left in."""
        task = run.tasks[key]
        try:
            task.state = self._body(run, key, task)
        except (Unavailable, Crash) as error:
            task.tries += 1
            task.job, task.state = None, "none"
            if task.tries >= TRIES_MAX:
                task.state = "failed"
                self._harmed(run.batch_id)
            return f"{type(error).__name__}, {task.state}"
        finally:
            # A task that was cleared meanwhile is another one now, and what becomes of this one nobody hears.
            if key[0] == "settle" and task.state in FINAL and run.tasks.get(key) is task:
                run.live = False
        return task.state

    def _body(self, run: SimRun, key: Key, task: Task) -> State:
        batch_id, (name, number) = run.batch_id, key
        if name == "validate":
            partitions = validating.validate(batch_id)
            if partitions:
                run.expand(partitions)
            return "success" if partitions else "skipped"
        if name == "hold_credits":
            return "success" if holding.hold_credits(batch_id) == "held" else "skipped"
        if name == "wait_for_capacity":
            answer = waiting.look_for_grant(batch_id)
            return "deferred" if answer == "deferred" else "success" if answer == "granted" else "skipped"
        if name == "infer_partition":
            # Without partitions nothing before it succeeded, so it is never due unmapped.
            return self._infer(batch_id, number or 0, task)
        if name == "collate":
            finishing.collate(batch_id)
        else:
            finishing.settle(batch_id)
        return "success"

    def _infer(self, batch_id: str, number: int, task: Task) -> State:
        if task.job is not None:
            job, task.job = task.job, None
            self.ends.append((batch_id, number, job.order.lease_id, job.exit))
            answer = attempts.end(*self.ends[-1])
            if answer != "again":
                return "success"
        order = attempts.begin(batch_id, number)
        if order == "over":
            return "success"
        if order is None:
            return "deferred"
        task.job = self._start_job(order)
        return "running"


def awake(rows: list[tuple[str, int | None, str]], batch_id: str, key: Key) -> bool:
    """Whether the stream of grants has news for a deferred task: the trigger's rule over the same snapshot."""
    if (batch_id, None, "open") not in rows:
        return True
    if key[0] == "wait_for_capacity":
        return any(one == batch_id and what == "granted" for one, _, what in rows)
    return any((one, number) == (batch_id, key[1]) and what != "open" for one, number, what in rows)
