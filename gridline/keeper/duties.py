"""A duty: one thing the keeper does again and again, in a thread of its own, so that no duty holds up another."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gridline.errors import Unavailable
from gridline.telemetry import metrics

log = logging.getLogger(__name__)


def each(name: str, things: Iterable[str], act: Callable[[str], bool]) -> int:
    """Do a step's work on one thing after another; how many it did something to.

    What fails for one by itself is logged and tried again next time; it holds up no other. A dependency that is away
    ends the step, since it would fail for all.
    """
    done = 0
    for one in things:
        try:
            done += act(one)
        except Unavailable:
            raise
        except Exception:
            log.exception("%s failed for %s; the others go on.", name, one)
            metrics.KEEPER_STEP_ERRORS.labels(name).inc()
    return done


@dataclass(frozen=True)
class Duty:
    """What to do, how often at least, and which notifications call for it at once."""

    name: str
    step: Callable[[], object]
    every_seconds: float
    topics: frozenset[str] = frozenset()


class DutyThread:
    """Runs one duty while the keeper leads. An error ends one step, never the duty."""

    def __init__(self, duty: Duty, leading: threading.Event, stopping: threading.Event) -> None:
        self._duty = duty
        self._leading = leading
        self._stopping = stopping
        self._called = threading.Event()
        self._thread = threading.Thread(target=self._run, name=duty.name, daemon=True)

    def start(self) -> None:
        """Begin; the first step comes as soon as the keeper leads."""
        self._thread.start()

    def notified(self, topic: str) -> None:
        """Have the next step come at once if the duty cares for this topic."""
        if topic in self._duty.topics:
            self._called.set()

    def call(self) -> None:
        """Have the next step come at once (also so that a stopping keeper is seen)."""
        self._called.set()

    def join(self, seconds: float) -> bool:
        """Wait for the current step to end; whether it did."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self._leading.is_set():
                self.run_once()
            self._called.wait(self._duty.every_seconds)
            self._called.clear()

    def run_once(self) -> None:
        """One step, timed, with its error logged."""
        started = time.monotonic()
        try:
            self._duty.step()
        except Unavailable as away:
            # A dependency that is away is its own alarm; a traceback each second would hide others.
            log.warning("%s: %s", self._duty.name, away.message)
            metrics.KEEPER_STEP_ERRORS.labels(self._duty.name).inc()
        except Exception:
            log.exception("%s failed; it is tried again.", self._duty.name)
            metrics.KEEPER_STEP_ERRORS.labels(self._duty.name).inc()
        metrics.KEEPER_STEP_SECONDS.labels(self._duty.name).observe(time.monotonic() - started)
