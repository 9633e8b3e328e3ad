"""One GPU job: resumes a partition, gets its engine, sends its lines, and keeps results, progress and stops going."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from typing import TypeVar

from gpu_jobs.answers import Answerer
from gpu_jobs.engine_access import Asked, Engine, EngineKeeper, EngineLink, KeeperAway
from gpu_jobs.logs import Log
from gpu_jobs.pacing import lines_at_once
from gpu_jobs.partition import Lines, Spec, finished_lines, read_spec
from gpu_jobs.progress import Progress
from gpu_jobs.results import Results
from gpu_jobs.sending import Sender
from gpu_jobs.stopping import Stop, pause
from gridline import limits
from gridline.clock import Clock, SystemClock
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.storage import Store, StoreUnavailable

T = TypeVar("T")
ALONE_MAX = 8
"""After a death up to so many suspects run one by one. More run in groups first: most deaths are no line's doing."""
SAME_ENGINE_SECONDS = 20.0
"""A dead engine that the keeper calls ready for longer than this is tried once more."""


@dataclass(frozen=True)
class Rhythm:
    """How often things happen, in seconds; tests go faster."""

    beat: float = limits.PROGRESS_INTERVAL_SECONDS
    close: float = 0.2
    ask: float = 0.5
    keeper_away: float = 60.0
    store_away: float = 60.0
    segment_seconds: float = limits.SEGMENT_SECONDS_MAX
    segment_lines: int = limits.SEGMENT_LINES_MAX


class EngineUnhealthy(Exception):
    """Raised when the engine cannot be had; ``why`` is for the operator."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Job:
    """One attempt at one partition."""

    def __init__(
        self,
        order: JobOrder,
        store: Store,
        *,
        socket: Path,
        log: Log,
        rhythm: Rhythm | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._order, self._store = order, store
        self._rhythm, self._clock = rhythm or Rhythm(), clock or SystemClock()
        self._keeper = EngineKeeper(socket)
        self.stop = Stop()
        self._spec: Spec = read_spec(store, order.spec_key)
        log.bound.update(batch_id=self._spec.batch_id, partition=self._spec.partition)
        self._log = log
        self._lines = Lines(store, self._spec.lines_key)
        finished = finished_lines(store, (*order.earlier_prefixes, order.attempt_prefix))
        # Places of lines; the lines themselves are read when they are sent.
        self._waiting = deque(self._lines.in_engine_order(finished))
        self._suspects: deque[int] = deque()
        self._accused: deque[int] = deque()
        self._deaths: dict[int, int] = {}
        self._results = Results(
            store,
            order.attempt_prefix,
            finished=finished.values(),
            lines_max=self._rhythm.segment_lines,
            seconds_max=self._rhythm.segment_seconds,
        )
        self._progress = Progress(store, order.attempt_prefix, len(self._lines), self._results)
        self._answerer = Answerer(self._spec)
        self._storing = asyncio.Lock()
        self._over = asyncio.Event()

    async def run(self) -> JobExit:
        """Do what is left of the partition; how the job ends."""
        self._log.info(
            "job started",
            lines=self._progress.lines,
            finished=self._results.done + self._results.failed,
            deadline_unix=self._order.deadline_unix,
        )
        try:
            ended = await self._kept_going()
        finally:
            await self._keeper.close()
        self._log.info(
            "job ended",
            exit=ended.name,
            reason=self.stop.reason,
            done=self._results.done,
            failed=self._results.failed,
            engine_deaths=self._progress.engine_deaths,
        )
        return ended

    async def _kept_going(self) -> JobExit:
        """Work, with the heartbeat and the segments beside it, then write what is left."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat())
            group.create_task(self._close_segments())
            try:
                ended = await self._work()
            except EngineUnhealthy as error:
                ended = self._gave_up(error)
            # Not cancelled: a write that is under way must not run beside the last flush.
            self._over.set()
        await self._in_store(self._results.flush)
        await self._in_store(self._progress.beat)
        return ended

    async def _work(self) -> JobExit:
        dead: Engine | None = None
        while self._left() and not self.stop.asked:
            engine = await self._engine(dead)
            if engine is None:
                break
            dead = engine if await self._served_by(engine) else None
        self._progress.state = "stopped" if self.stop.asked else "done"
        return JobExit.STOPPED if self.stop.asked else JobExit.DONE

    async def _served_by(self, engine: Engine) -> bool:
        """Send lines until the engine dies (True), none is left or the job must stop (False)."""
        link = EngineLink(engine)
        try:
            while self._left() and not self.stop.asked:
                sender = Sender(
                    link,
                    self._answerer,
                    read=self._lines.__getitem__,
                    finished=self._results.add,
                    stop=self.stop,
                )
                hit = await sender.send(*self._next(engine))
                if hit and not self.stop.asked:
                    self._blame(hit)
                    return True
        finally:
            await link.close()
        return False

    def _left(self) -> bool:
        return bool(self._waiting or self._suspects or self._accused)

    def _next(self, engine: Engine) -> tuple[deque[int], int]:
        """What to send next, and how many at once: the more a line is suspected, the fewer run beside it."""
        if self._accused:
            return self._accused, 1
        if self._suspects:
            few = len(self._suspects) <= ALONE_MAX
            return self._suspects, 1 if few else ceil(sqrt(len(self._suspects)))
        fewest, most = engine.lines_at_once, engine.lines_at_once_max
        weights = map(self._lines.weight, self._waiting)
        return self._waiting, lines_at_once(weights, fewest=fewest, most=most)

    def _blame(self, hit: list[int]) -> None:
        """An engine died: who was in flight is suspected; who was alone there, and not for the first time, is taken out."""
        self._progress.engine_healthy = False
        self._progress.engine_deaths += 1
        self._log.warning("the engine died", in_flight=len(hit), engine_deaths=self._progress.engine_deaths)
        for place in hit:
            deaths = self._deaths[place] = self._deaths.get(place, 0) + 1
            if deaths == 1:
                self._suspects.append(place)
            elif len(hit) > 1:
                self._accused.append(place)
            else:
                why = f"The engine died {deaths} times while it worked on it."
                self._results.add(self._answerer.failed(self._lines[place], why))

    async def _engine(self, dead: Engine | None) -> Engine | None:
        """The model's engine, once it is ready (and is another than the dead one); None: the job must stop.

        Raises:
            EngineUnhealthy: it failed to start, or the keeper is away for too long.
        """
        asked = heard = time.monotonic()
        while not self.stop.asked:
            now = time.monotonic()
            try:
                answer = await self._ask()
            except KeeperAway:
                if now - heard > self._rhythm.keeper_away:
                    raise EngineUnhealthy("the engine keeper does not answer") from None
            else:
                heard = now
                if answer.failure is not None:
                    raise EngineUnhealthy(answer.failure)
                engine = answer.engine
                patient = now - asked > SAME_ENGINE_SECONDS
                if engine and (dead is None or engine.instance != dead.instance or patient):
                    self._progress.engine_version = engine.version
                    self._progress.engine_healthy, self._progress.state = True, "running"
                    self._log.info("engine ready", engine_version=engine.version)
                    await self._say_ready()
                    self._answer_without(engine.adapters_failed)
                    return engine
            await self.stop.pause(self._rhythm.ask)
        return None

    async def _ask(self) -> Asked:
        return await self._keeper.ask(
            self._spec.model, claim=self._order.attempt_prefix, adapters=self._spec.adapters
        )

    def _answer_without(self, failed: dict[str, str]) -> None:
        """Lines of adapters that cannot be loaded are answered so; the others go on."""
        if not failed:
            return
        self._log.warning("adapters are not there", why=failed)
        for queue in (self._waiting, self._suspects, self._accused):
            for _ in range(len(queue)):
                place = queue.popleft()
                line = self._lines[place]
                if self._answerer.model(line) in failed:
                    self._results.add(
                        self._answerer.failed(line, "Its fine-tuned model could not be loaded.")
                    )
                else:
                    queue.append(place)

    async def _say_ready(self) -> None:
        """Before the first line, not at the next beat: an attempt that was never healthy is taken to have no segment."""
        try:
            await self._in_store(self._progress.beat)
        except StoreUnavailable as error:
            self._log.warning("the store is away", why=error.message)

    def _gave_up(self, error: EngineUnhealthy) -> JobExit:
        """Never healthy is the engine's story; healthy once and then away is an attempt that failed."""
        self._log.warning("no engine", why=error.why)
        self._progress.state = "engine_unhealthy"
        return JobExit.CRASHED if self._progress.engine_version else JobExit.ENGINE_UNHEALTHY

    async def _beat(self) -> None:
        """Progress out, stop marker in, the engine kept in use; a store that is away too long ends the job."""
        last = time.monotonic()
        while not self._over.is_set():
            try:
                await self._in_store(self._progress.beat)
                reason = await self._in_store(self._progress.stop_reason)
            except StoreUnavailable as error:
                self._log.warning("the store is away", why=error.message)
                if time.monotonic() - last > self._rhythm.store_away:
                    raise
            else:
                last = time.monotonic()
                if reason is not None:
                    self.stop.ask(reason)
            deadline = self._order.deadline_unix
            if deadline is not None and self._clock.now().timestamp() >= deadline:
                self.stop.ask("deadline")
            await self._keep_engine_warm()
            await pause(self._over, self._rhythm.beat)

    async def _keep_engine_warm(self) -> None:
        if self._progress.engine_healthy:
            try:
                await self._ask()
            except KeeperAway:
                self._log.warning("the engine keeper does not answer")

    async def _close_segments(self) -> None:
        while not self._over.is_set():
            try:
                await self._in_store(self._results.close_due)
            except StoreUnavailable as error:
                # The rows stay; the beat decides when the store has been away for too long.
                self._log.warning("a segment could not be written", why=error.message)
                await pause(self._over, self._rhythm.beat)
            await pause(self._over, self._rhythm.close)

    async def _in_store(self, call: Callable[[], T]) -> T:
        """A store call off the loop, one at a time: the results are not made for two threads."""
        async with self._storing:
            return await asyncio.to_thread(call)
