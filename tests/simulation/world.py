"""A whole platform in one thread: production's modules on a clock, a store, an Airflow and engines that are made up.

One seed is one history. Every step lets one of them act: a customer, a task, a GPU job, a duty of the keeper, or an
accident. At each call of the store and each transaction another may act first, so that steps overlap.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from sqlalchemy import Engine, text, update

import gpu_jobs.results
from gridline import ids, storage
from gridline.batches import moves, validating
from gridline.batches.tables import Batch
from gridline.capacity import attempts, pools, waiting
from gridline.catalog import cards
from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.customers.tables import Account
from gridline.db import work as works
from gridline.db.work import Work, unit_of_work
from gridline.errors import Unavailable
from gridline.keeper import dispatch
from gridline.keeper.__main__ import duties
from gridline.keeper.deadlines import Deadlines
from gridline.keeper.progress import ProgressFollower
from gridline.ledger import posting
from gridline.lines.orders import JobOrder
from gridline.settings import read_settings
from gridline.storage import layout
from tests.conftest import _CHILDREN_FIRST
from tests.simulation.accidents import Accidents
from tests.simulation.clients import CARDS, Clients
from tests.simulation.creates import Customer
from tests.simulation.faults import Crash, Faults, Objects, SimStore, faulty_session
from tests.simulation.history import History
from tests.simulation.jobs import SimJob, Written
from tests.simulation.looks import Looks
from tests.simulation.runs import Bodies, Key, SimAirflow, SimRun, awake

BEGIN = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
NESTED_MAX = 2
COPIED = ("validate", "hold_credits", "hold_credits", "wait_for_capacity", "collate", "collate")
"""Tasks whose second copy may come at any moment and then changes nothing."""
DUTIES = {
    "dispatch": 10, "allocate": 10, "progress": 10, "deadlines": 6, "credit": 3, "reconcile": 4, "notes": 1,
    "figures": 1, "uploads": 1, "forget": 1, "retention": 1, "orphans": 1,
    "gpu_use": 0,  # it reads only, and without it the histories of known seeds stay as they are
    "request_log": 0,  # as above, and the dialect has none
    "webhooks": 0, "mail": 0, "mail_users": 0,  # as above, and nothing here leaves the process
}  # fmt: skip
"""How often the keeper comes to each of its duties."""
CREDIT = {"rich": 10**9, "plain": 5_000, "poor": 600}
"""Nano-credits; a batch costs some hundreds to some thousands here."""


class World:
    """Everything that acts, and how it is called."""

    def __init__(self, seed: int, *, engine: Engine, owner: Engine, models: Path) -> None:
        self.random = Random(seed)
        self.history = History(seed)
        self.clock = FrozenClock(BEGIN)
        self.seconds = 1_000.0
        self.began = BEGIN
        """When this step began."""
        self.busy: list[str] = []
        self.violation: Exception | None = None
        self.keeper: dict[str, Callable[[], object]] = {}
        self.keeper_back = BEGIN
        """Until then no keeper runs."""
        rate = self.random.choice((0.0, 0.5, 1.0, 1.0, 2.0))
        self._pace = (75, 18, self.random.choice((2, 5)), self.random.choice((0.3, 1, 3)), 2)
        overlap = self.random.choice((0.02, 0.06, 0.15))
        self.faults = Faults(self.random, rate, self._elsewhere, overlap)
        self._at_hand = ""
        """The batch that was locked last: others want the same one, or races would be rare."""
        self.objects = Objects(self.faults, self.clock.now)
        self.store = SimStore(self.objects)
        self.airflow = SimAirflow(self.faults, self.clock.now)
        self.jobs: list[SimJob] = []
        self.written: Written = {}
        self.late: list[tuple[SimRun, Key]] = []
        """Deliveries that come again, some time."""
        self._engine, self._owner, self._models = engine, owner, models

    @contextmanager
    def running(self) -> Iterator[None]:
        """Production's modules live in this world for so long."""
        with pytest.MonkeyPatch.context() as patch:
            self._install(patch)
            healed, self.faults.healed = self.faults.healed, True
            with self._owner.begin() as connection:
                connection.execute(text("; ".join(f'DELETE FROM "{one}"' for one in _CHILDREN_FIRST)))
            customers = self._customers()
            self.faults.healed = healed
            self.clients = Clients(self.random, self.store, self.history, customers)
            self.looks = Looks(
                self._owner, self.objects, self.clients.inputs, self.clock, self._at_work, self.written
            )
            self.bodies = Bodies(self._start_job, self.looks.harmed.add)
            self.restart_keeper()
            self.accidents = Accidents(self)
            try:
                yield
            finally:
                self.looks.close()

    def _install(self, patch: pytest.MonkeyPatch) -> None:
        chosen = replace(read_settings({}), models_dir=str(self._models), deferred_runs_max=2)
        for module in (validating, waiting, dispatch):
            patch.setattr(module, "settings", lambda: chosen)
        patch.setattr(works, "app_engine", lambda: self._engine)
        patch.setattr(works, "Session", faulty_session(self.faults))
        patch.setattr(works, "DatabaseClock", lambda session: self.clock)
        patch.setattr(moves, "locked", self._locked(moves.locked))
        patch.setattr(storage, "store", lambda: self.store)
        patch.setattr(cards, "listed", lambda work: list(CARDS.values()))
        patch.setattr(ids, "secrets", SimpleNamespace(randbelow=self.random.randrange))
        patch.setattr(gpu_jobs.results, "time", SimpleNamespace(monotonic=lambda: self.seconds))
        for duty in (Deadlines, ProgressFollower):
            patch.setattr(duty.__init__, "__kwdefaults__", {"monotonic": lambda: self.seconds})

    def _locked(self, real: Callable[[Work, str], Batch]) -> Callable[[Work, str], Batch]:
        def locked(work: Work, batch_id: str) -> Batch:
            self._at_hand = batch_id
            return real(work, batch_id)

        return locked

    def _customers(self) -> list[Customer]:
        made = []
        with unit_of_work() as work:
            gpus = self.random.randint(1, 3)
            pools.seed(
                work, json.dumps([{"name": "local", "gpus": gpus, "models": ["*"], "datacenter": False}])
            )
            for name, credit in CREDIT.items():
                account = accounts.open_account(work, name)
                posting.grant(work, account.id, credit, actor="operator", why="first", key="first")
                made.append(Customer(name, account.id))
            limits = {"open_batches_max": 3, "leases_max": 2}
            work.session.execute(update(Account).values(**limits))
        return made

    def act(self, actor: str, call: Callable[[], object]) -> None:
        """Let one act, unless it is at something already; its death and what it could not reach end its step only."""
        if actor in self.busy:
            return
        depth = len(self.busy)
        self.busy.append(actor)
        open_before = self.faults.open_transactions
        try:
            said = call()
            if depth:
                # Others see what the step around this one has committed so far: it must hold too.
                self.looks.quick(self.began)
        except Crash:
            said = "dies"
            if actor == "keeper" or actor.startswith("duty"):
                self.restart_keeper()
        except Unavailable as away:
            said = type(away).__name__
        except Exception as error:
            self.violation = self.violation or error
            self.history.add(f"{actor}: {type(error).__name__}")
            raise
        finally:
            self.busy.pop()
            self.faults.open_transactions = open_before
        self.history.add(f"{'  ' * depth}{self.clock.now():%d %H:%M:%S} {actor}: {said}")

    def _elsewhere(self) -> None:
        if not 0 < len(self.busy) <= NESTED_MAX:
            return
        if self._at_hand and self.random.random() < 0.6:
            self._rival(self._at_hand)
        elif not self.faults.healed:
            self.someone()

    def _rival(self, batch_id: str) -> None:
        """Somebody wants the very batch that is at hand."""
        jobs = [job for job in self.jobs if batch_id in job.order.spec_key and not job.over]
        run = self.airflow.runs.get(batch_id, SimRun(batch_id))
        what = self.random.choices(("cancel", "job", "copy", "settle", "duty"), (1, 3, 3, 2, 3))[0]
        if what == "cancel":
            self.act("client", lambda: self.clients.cancel(batch_id))
        elif what == "job" and jobs:
            job = self.random.choice(jobs)
            job.wake()
            self.step_job(job)
        elif what == "copy":
            self._deliver_late((run, (self.random.choice(COPIED), None)))
        elif what == "settle" and self.task_name(run, ("settle", None)) in self.busy:
            # Two instances of a teardown at once: its run is over, whichever comes first.
            self._copy(run, ("settle", None))
        elif what == "duty" and self.clock.now() >= self.keeper_back:
            name = self.random.choice(("deadlines", "reconcile", "progress", "allocate"))
            self.act(f"duty {name}", self.keeper[name])

    def someone(self) -> None:
        """One acts; the dice say who."""
        who = self.random.choices(("task", "job", "duty", "client", "accident"), (38, 26, 22, 10, 6))[0]
        getattr(self, f"_some_{who}")()

    def _some_client(self) -> None:
        self.act("client", lambda: self.clients.act(self.clock.now(), self.looks.open_slots()))

    def _some_duty(self) -> None:
        if self.clock.now() < self.keeper_back:
            return
        (name,) = self.random.choices(list(DUTIES), weights=list(DUTIES.values()))
        self.act(f"duty {name}", self.keeper[name])

    def _some_job(self) -> None:
        alive = [job for job in self.jobs if not job.over]
        if alive:
            self.step_job(self.random.choice(alive))

    def step_job(self, job: SimJob) -> None:
        """A moment of this job."""
        name = self.history.name("job", job.order.attempt_prefix)

        def step() -> str:
            job.step(self.written)
            return "goes on" if job.exit is None else job.exit.name

        self.act(name, step)

    def _some_task(self) -> None:
        if self.airflow.away:
            return
        if self.late and self.random.random() < 0.1:
            self._deliver_late(self.late.pop(self.random.randrange(len(self.late))))
            return
        ends = [
            one for one in self.bodies.ends if self._followed(one[0], one[1]) or self.random.random() < 0.02
        ]
        if ends and self.faults.strike(0.1):
            end = self.random.choice(ends)
            name = f"{self.history.name('b', end[0])} end of attempt[{end[1]}] again"
            self.act(name, lambda: attempts.end(*end))
            return
        due = self.due_tasks()
        if due:
            run, key = self.random.choice(due)
            self.run_task(run, key)

    def due_tasks(self) -> list[tuple[SimRun, Key]]:
        """Tasks that Airflow would run now."""
        news = self.looks.rows(waiting.SNAPSHOT_SQL)
        rows = [(row["batch_id"], row["partition"], row["what"]) for row in news]
        return [
            (run, key)
            for run in self.airflow.runs.values()
            if run.live
            for key in run.due()
            if run.tasks[key].state != "deferred" or awake(rows, run.batch_id, key)
        ]

    def run_task(self, run: SimRun, key: Key) -> None:
        """Run one due task."""
        if self.faults.strike(0.03) and key[0] != "infer_partition":
            self.late.append((run, key))
        self.act(self.task_name(run, key), lambda: self.bodies.run(run, key))

    def task_name(self, run: SimRun, key: Key) -> str:
        """As the history calls it."""
        number = "" if key[1] is None else f"[{key[1]}]"
        return f"{self.history.name('b', run.batch_id)} {key[0]}{number}"

    def _deliver_late(self, one: tuple[SimRun, Key]) -> None:
        """A second copy of a task that Airflow believed dead, or a message that came late: its answer reaches nobody."""
        run, key = one
        if key[0] == "settle":
            # The word "the run is over" of an earlier life of this run.
            self.looks.harmed.add(run.batch_id)
        self._copy(run, key)

    def _copy(self, run: SimRun, key: Key) -> None:
        shadow = SimRun(run.batch_id)
        self.act(f"{self.task_name(run, key)} again", lambda: self.bodies.run(shadow, key))

    def _start_job(self, order: JobOrder) -> SimJob:
        job = SimJob(order, self.store, self.faults, self.clock.now)
        self.jobs.append(job)
        return job

    def _followed(self, batch_id: str, number: int) -> bool:
        """Whether another job is at this partition now."""
        key = layout.partition_spec_key(batch_id, number)
        return any(job.order.spec_key == key and not job.over for job in self.jobs)

    def _at_work(self, lease_id: str) -> bool:
        return any(job.order.lease_id == lease_id and not job.over for job in self.jobs)

    def restart_keeper(self) -> None:
        """A keeper that remembers nothing."""
        self.keeper = {duty.name: duty.step for duty in duties(self.airflow)}

    def _some_accident(self) -> None:
        if self.faults.strike(1):
            self.act("accident", self.accidents.happen)

    def tick(self, seconds: float) -> None:
        """Time passes; the wall clock may also step back."""
        self.clock.advance(seconds=seconds)
        self.seconds += max(0.0, seconds)

    def _pass_time(self) -> None:
        kind = self.random.choices(("second", "moment", "minutes", "hours", "back"), self._pace)[0]
        spans: dict[str, tuple[float, float]] = {
            "second": (0, 3), "moment": (5, 40), "minutes": (60, 900), "hours": (3_600, 36_000), "back": (-4, 0),
        }  # fmt: skip
        self.tick(round(self.random.uniform(*spans[kind]), 3))

    def step(self) -> None:
        """One acts, time passes, and everything still holds."""
        self.began = self.clock.now()
        self.someone()
        if self.violation is not None:
            raise self.violation
        self.looks.quick(self.began)
        self._pass_time()
