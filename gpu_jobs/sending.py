"""Sends lines to one engine, many at once, and tells a line's own failure from the engine's death."""

import asyncio
from collections import deque
from collections.abc import Callable

import httpx

from gpu_jobs.answers import Answerer, AnswerUnusable
from gpu_jobs.engine_access import EngineLink
from gpu_jobs.partition import Line
from gpu_jobs.stopping import Stop
from gridline.lines.segments import ResultRow

TRIES_MAX = 2
SECOND_LOOK_SECONDS = 0.5
DEATH_SECONDS = 2.0
"""After an engine's death its other lines get this long to fail by themselves."""


class EngineGone(Exception):
    """Raised for a line that was in flight when its engine died."""


class Sender:
    """Sends lines until there are none, the engine dies, or the job must stop."""

    def __init__(
        self,
        link: EngineLink,
        answerer: Answerer,
        *,
        read: Callable[[int], Line],
        finished: Callable[[ResultRow], None],
        stop: Stop,
    ) -> None:
        self._link, self._answerer, self._stop = link, answerer, stop
        self._read, self._finished = read, finished
        self._gone = asyncio.Event()

    async def send(self, lines: deque[int], at_once: int) -> list[int]:
        """Take places of lines from the left and answer them.

        Returns the lines in flight when the engine died, empty if it did not. Lines in flight when the job
        must stop get its grace and then are left without a row.
        """
        flying: set[int] = set()
        workers = [asyncio.create_task(self._work(lines, flying)) for _ in range(min(at_once, len(lines)))]
        everyone = asyncio.create_task(_all_done(workers))
        over = asyncio.create_task(self._stop.over())
        gone = asyncio.create_task(self._gone.wait())
        try:
            await asyncio.wait([everyone, over, gone], return_when=asyncio.FIRST_COMPLETED)
            if self._gone.is_set():
                await asyncio.wait(
                    [everyone, over], timeout=DEATH_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            for task in (*workers, everyone, over, gone):
                task.cancel()
            outcomes = await asyncio.gather(*workers, everyone, over, gone, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return sorted(flying) if self._gone.is_set() else []

    async def _work(self, lines: deque[int], flying: set[int]) -> None:
        while lines and not self._stop.asked and not self._gone.is_set():
            place = lines.popleft()
            flying.add(place)
            try:
                row = await self._answered(self._read(place))
            except EngineGone:
                self._gone.set()
                return
            flying.discard(place)
            self._finished(row)

    async def _answered(self, line: Line) -> ResultRow:
        """The line's row, whatever became of it; the engine's death is no line's own."""
        bound = self._answerer.spec.line_seconds_max
        try:
            async with asyncio.timeout(bound):
                return await self._tried(line)
        except TimeoutError:
            return self._answerer.failed(line, f"The engine did not finish it within {bound:g} seconds.")

    async def _tried(self, line: Line) -> ResultRow:
        for number in range(1, TRIES_MAX + 1):
            row = await self._try(line, number)
            if row is not None:
                return row
            if not await self._engine_lives():
                raise EngineGone
        return self._answerer.failed(line, f"The engine failed to answer it, {TRIES_MAX} times.")

    async def _try(self, line: Line, number: int) -> ResultRow | None:
        """One try: a row, or None when nothing usable came back."""
        # The engine wants every request id once, also while it still works on a try that we gave up.
        request_id = f"{self._answerer.request_id(line)}-{number}"
        try:
            answer = await self._link.send(self._answerer.spec.endpoint, line.body, request_id)
        except httpx.TransportError:
            return None
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            # Another engine listens on this port by now: ours is gone.
            raise EngineGone
        if answer.status_code in {httpx.codes.BAD_REQUEST, httpx.codes.UNPROCESSABLE_ENTITY}:
            return self._answerer.engine_refused(line, answer.content)
        if answer.status_code != httpx.codes.OK:
            return None
        try:
            # Off the loop: a big answer's JSON must not hold up the others.
            return await asyncio.to_thread(self._answerer.delivered, line, answer.content)
        except AnswerUnusable:
            return None

    async def _engine_lives(self) -> bool:
        """Two looks: a dying engine may say it is well once more."""
        if not await self._link.healthy():
            return False
        await asyncio.sleep(SECOND_LOOK_SECONDS)
        return await self._link.healthy()


async def _all_done(workers: list[asyncio.Task[None]]) -> None:
    await asyncio.wait(workers)
