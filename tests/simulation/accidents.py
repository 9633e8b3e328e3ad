"""Accidents in a simulated world: what dies, sleeps or goes away, and what an operator does to runs."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.simulation.jobs import NAPS, SimJob
from tests.simulation.runs import SimRun

if TYPE_CHECKING:
    from tests.simulation.world import World


class Accidents:
    """Happen to a world."""

    def __init__(self, world: "World") -> None:
        self._world, self._random = world, world.random

    def happen(self) -> str:
        """One of them; what it was."""
        name = self._random.choices(
            ("keeper dies", "keeper away", "airflow away", "job dies", "job sleeps", "task killed", "run deleted",
             "run marked failed", "task cleared"),
            (3, 2, 3, 8, 6, 5, 1, 1, 4),
        )[0]  # fmt: skip
        return f"{name}: {getattr(self, '_' + name.replace(' ', '_'))()}"

    def _keeper_dies(self) -> str:
        self._world.restart_keeper()
        return "begins anew"

    def _keeper_away(self) -> str:
        until = self._world.clock.now() + timedelta(minutes=self._random.choice((1, 5, 60, 300)))
        self._world.keeper_back = until
        self._world.restart_keeper()
        return f"until {until:%d %H:%M}"

    def _airflow_away(self) -> str:
        self._world.airflow.away = not self._world.airflow.away
        return str(self._world.airflow.away)

    def _job_dies(self) -> str:
        return self._to_a_job(SimJob.kill)

    def _job_sleeps(self) -> str:
        return self._to_a_job(lambda job: job.sleep(seconds=self._random.choice(NAPS)))

    def _to_a_job(self, what: Callable[[SimJob], None]) -> str:
        alive = [job for job in self._world.jobs if not job.over]
        if not alive:
            return "none"
        job = self._random.choice(alive)
        what(job)
        return self._world.history.name("job", job.order.attempt_prefix)

    def _leave(self, job: SimJob) -> None:
        """Nobody follows the job any more: it dies, or is asked to stop, or does not notice."""
        fate = self._random.choice((SimJob.kill, lambda one: setattr(one, "asked_to_stop", True), None))
        if fate is not None:
            fate(job)

    def _task_killed(self) -> str:
        running = [
            (run, key)
            for run in self._world.airflow.runs.values()
            for key, task in run.tasks.items()
            if task.job is not None
        ]
        if not running:
            return "none"
        run, key = self._random.choice(running)
        task = run.tasks[key]
        if task.job is not None:
            self._leave(task.job)
        task.job, task.state = None, "none"
        return self._world.task_name(run, key)

    def _some_run(self) -> SimRun | None:
        return (
            self._random.choice(list(self._world.airflow.runs.values())) if self._world.airflow.runs else None
        )

    def _run_deleted(self) -> str:
        run = self._some_run()
        if run is None:
            return "none"
        for job in run.clear("validate"):
            self._leave(job)
        del self._world.airflow.runs[run.batch_id]
        self._world.looks.harmed.add(run.batch_id)
        return self._world.history.name("b", run.batch_id)

    def _run_marked_failed(self) -> str:
        run = self._some_run()
        if run is None or not run.live:
            return "none"
        for key, task in run.tasks.items():
            if task.job is not None and not task.job.over:
                self._leave(task.job)
            if key[0] != "settle" and task.state not in ("success", "skipped"):
                task.state, task.job = "failed", None
        run.marked_failed = True
        self._world.looks.harmed.add(run.batch_id)
        return self._world.history.name("b", run.batch_id)

    def _task_cleared(self) -> str:
        run = self._some_run()
        if run is None:
            return "none"
        name = self._random.choice([key[0] for key in run.tasks])
        for job in run.clear(name):
            self._leave(job)
        return f"{name} of {self._world.history.name('b', run.batch_id)}"
