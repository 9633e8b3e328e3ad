"""A GPU job in a simulated world: production's reading, results and progress around an engine that is made up."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random

from gpu_jobs.answers import Answerer
from gpu_jobs.partition import Line, Lines, finished_lines, read_spec
from gpu_jobs.progress import Progress
from gpu_jobs.results import Results
from gridline.errors import Unavailable
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.lines.segments import ResultRow
from gridline.storage import Store
from tests.simulation.faults import Crash, Faults

SEGMENT_LINES = 2
STORE_AWAY_MAX = 4
"""Steps in a row without the store, then the job gives up, as the real one does after a minute."""
NAPS = (20, 90, 600, 20_000)
"""Seconds that a machine stands still; a lease outlives the first, not the last."""

Written = dict[tuple[str, int], set[str]]
"""By batch and line, every body that an engine ever answered it with."""


class SimJob:
    """One attempt. It ends with an exit, or stays silent for ever when its machine died."""

    def __init__(self, order: JobOrder, store: Store, faults: Faults, now: Callable[[], datetime]) -> None:
        self.order = order
        self.exit: JobExit | None = None
        self.silent_until: datetime | None = None
        self._waking = False
        self._store, self._faults, self._now = store, faults, now
        random: Random = faults.random
        self._loading = random.choice((0, 0, 0, 1, 2, 3))
        self._doomed = faults.strike(0.08)
        self._dies_after = random.randint(0, 4) if faults.strike(0.2) else None
        self._sleeps_after = random.randint(1, 3) if faults.strike(0.5) else None
        self._away = 0
        self._waiting: list[int] | None = None
        self.asked_to_stop = False

    @property
    def over(self) -> bool:
        """Whether nothing of it will ever run again."""
        return self.exit is not None

    def sleep(self, **by: float) -> None:
        """Do nothing for that long, and then go on as if nothing had been: a zombie."""
        self.silent_until = self._now() + timedelta(**by)

    def wake(self) -> None:
        """Go on at the next step, if it was silent."""
        if self.silent_until is not None:
            self.silent_until = self._now()

    def kill(self) -> None:
        """End it at once; what is not in a closed segment is lost."""
        self.exit = JobExit.CRASHED

    def step(self, written: Written) -> None:
        """A moment of its life."""
        if self.over or (self.silent_until is not None and self._now() < self.silent_until):
            return
        self._waking, self.silent_until = self.silent_until is not None, None
        try:
            self._live(written)
            self._away = 0
        except Unavailable:
            self._away += 1
            # Nothing to read, nothing to run; later it waits for the store for a while.
            if self._waiting is None or self._away > STORE_AWAY_MAX:
                self.exit = JobExit.CRASHED
        except Crash:
            self.exit = JobExit.CRASHED

    def _live(self, written: Written) -> None:
        if self._waiting is None:
            self._open()
            return
        # Who wakes goes on with what it was at, and looks only then whether anybody still wants it.
        reason = None if self._waking else self._progress.stop_reason()
        if reason is not None or self._late() or self.asked_to_stop:
            self._end("stopped", JobExit.STOPPED)
        elif self._loading > 0:
            self._loading -= 1
            self._progress.beat()
        elif self._doomed:
            self.exit = JobExit.ENGINE_UNHEALTHY
            self._progress.state = "engine_unhealthy"
            self._progress.beat()
        else:
            self._work(written)

    def _open(self) -> None:
        spec = read_spec(self._store, self.order.spec_key)
        self._lines = Lines(self._store, spec.lines_key)
        finished = finished_lines(self._store, (*self.order.earlier_prefixes, self.order.attempt_prefix))
        self._results = Results(
            self._store, self.order.attempt_prefix, finished=finished.values(),
            lines_max=SEGMENT_LINES, seconds_max=5.0,
        )  # fmt: skip
        self._progress = Progress(self._store, self.order.attempt_prefix, len(self._lines), self._results)
        self._answerer = Answerer(spec)
        self._waiting = self._lines.in_engine_order(finished)

    def _work(self, written: Written) -> None:
        self._progress.state, self._progress.engine_healthy = "running", True
        self._progress.engine_version = "simulated"
        waiting = self._waiting or []
        for _ in range(self._faults.random.randint(0, 3)):
            if waiting:
                row = self._answer(self._lines[waiting.pop(0)])
                written.setdefault((self._answerer.spec.batch_id, row.line), set()).add(row.body)
                self._results.add(row)
                if self._dies_after is not None:
                    self._dies_after -= 1
                if self._sleeps_after is not None:
                    self._sleeps_after -= 1
        if self._sleeps_after is not None and self._sleeps_after <= 0 and not self._faults.healed:
            self._sleeps_after = None
            self.sleep(seconds=self._faults.random.choice(NAPS))
            return
        if self._dies_after is not None and self._dies_after <= 0:
            self._progress.beat()
            self.exit = JobExit.CRASHED
            return
        self._results.close_due()
        self._progress.beat()
        if not waiting:
            self._end("done", JobExit.DONE)

    def _end(self, state: str, ended: JobExit) -> None:
        """The last flush and the last word; a job that cannot write them has crashed."""
        self.exit = JobExit.CRASHED
        self._results.flush()
        self._progress.state = state
        self._progress.beat()
        self.exit = ended

    def _late(self) -> bool:
        deadline = self.order.deadline_unix
        return deadline is not None and self._now().timestamp() >= deadline

    def _answer(self, line: Line) -> ResultRow:
        """Another answer at each attempt, so that a line which counts twice is seen in the charge."""
        random = self._faults.random
        if random.random() < 0.08:
            return self._answerer.refused(line, 400, "invalid_request", "The engine refused the request.")
        asked = json.loads(line.body)
        usage: dict[str, int] = {"prompt_tokens": line.input_tokens}
        if "messages" not in asked:
            vector = [random.random() for _ in range(4)]
            data = {"data": [{"index": 0, "embedding": vector}], "usage": usage}
            return self._answerer.delivered(line, json.dumps(data).encode())
        tokens = random.randint(1, asked["max_tokens"])
        choice = {"index": 0, "message": {"content": f"{random.random()}"}, "finish_reason": "stop"}
        told = {"created": 1, "choices": [choice], "usage": {**usage, "completion_tokens": tokens}}
        return self._answerer.delivered(line, json.dumps(told).encode())
