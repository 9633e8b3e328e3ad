"""The engines of this host: which are wanted, which start, serve, fail, and are stopped when idle.

``ask`` is called by many threads and only notes and tells. Everything that starts, looks at or ends a
process happens in ``tick``, in one thread.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_jobs import engine_start, loading
from gpu_jobs.adapters import EngineAdapters
from gpu_jobs.engine_process import EngineProcess, Health
from gpu_jobs.engine_records import Records
from gpu_jobs.logs import Log
from gridline.limits import ENGINE_START_SECONDS_MAX, ENGINE_STOP_SECONDS_MAX
from gridline.lines.adapters import Adapter
from gridline.settings import settings

PROBE_EVERY_SECONDS = 1.0
REFUSALS_MAX = 3
SILENT_SECONDS_MAX = 60.0
TRY_AGAIN_SECONDS = 10.0
"""A failed start is tried again when asked this much later."""
IN_USE_SECONDS = 15.0
"""Whoever uses an engine asks for it more often than this."""


@dataclass
class Engine:
    """One wanted engine."""

    model: dict[str, Any]
    asked: float
    state: str = "starting"
    """starting (also: waiting for its turn), ready, failed, or stopped."""
    why: str = ""
    since: float = field(default_factory=time.monotonic)
    process: EngineProcess | None = None
    version: str | None = None
    probed: float = 0.0
    well: float = 0.0
    refusals: int = 0
    adapters_wanted: bool = False
    """Whether somebody asked for an adapter: from then on its process is one that can load them."""
    adapters: EngineAdapters | None = None
    """Of its process; None: it cannot load any."""
    users: dict[str, float] = field(default_factory=dict)
    """Who was told where it is, and asked last when."""

    def turn(self, state: str, why: str = "") -> None:
        """Enter a state now."""
        self.state, self.why, self.since = state, why, time.monotonic()


class Engines:
    """All engines of this host."""

    def __init__(self, *, records: Records, logs: Path, log: Log) -> None:
        self._records, self._logs, self._log = records, logs, log
        self._lock = threading.Lock()
        self._engines: dict[str, Engine] = {}

    def ask(
        self, model: dict[str, Any], *, claim: str = "", adapters: Sequence[Adapter] = ()
    ) -> dict[str, Any]:
        """Want this model's engine with these adapters, keep them in use, and learn where it stands.

        ``claim`` names who asks. An engine that cannot load adapters, when one is asked for, serves those who use it to
        their end and nobody else, and is then started anew.
        """
        now = time.monotonic()
        with self._lock:
            engine = self._engines.setdefault(model["id"], Engine(model, asked=now))
            engine.asked = now
            if engine.state == "stopped" or (
                engine.state == "failed" and now - engine.since > TRY_AGAIN_SECONDS
            ):
                engine.model = model
                engine.turn("starting")
            engine.adapters_wanted = engine.adapters_wanted or bool(adapters)
            if engine.state != "ready":
                return _told(engine)
            if _must_restart(engine) and (adapters or claim not in _users(engine, now)):
                return {"state": "starting"}
            recent = _users(engine, now)
            engine.users = {one: asked for one, asked in engine.users.items() if one in recent} | {claim: now}
            if engine.adapters is None or not adapters:
                return _told(engine)
            standing = engine.adapters.ask(claim, adapters)
            if not standing.ready:
                return {"state": "starting"}
            return {**_told(engine), "adapters_failed": standing.failed}

    def listed(self) -> list[dict[str, Any]]:
        """Every engine for the operator's eyes: no keys."""
        now = time.monotonic()
        with self._lock:
            return [
                {
                    "model": name,
                    "state": engine.state,
                    "why": engine.why or None,
                    "seconds": round(now - engine.since, 1),
                    "idle_seconds": round(now - engine.asked, 1),
                    "engine_version": engine.version,
                    "adapters": engine.adapters.loaded() if engine.adapters else [],
                }
                for name, engine in sorted(self._engines.items())
            ]

    def tick(self) -> None:
        """Look after every engine once; start the next wanted one if none is starting."""
        with self._lock:
            engines = list(self._engines.values())
        for engine in engines:
            if engine.process is not None:
                self._look_after(engine, engine.process)
        waiting = [one for one in engines if one.state == "starting" and one.process is None]
        if waiting and not any(one.state == "starting" and one.process for one in engines):
            # One start at a time: two together take longer than one after the other on few cores.
            self._start(min(waiting, key=lambda one: one.since), engines)

    def stop_all(self) -> None:
        """End every engine, together."""
        with self._lock:
            processes = [engine.process for engine in self._engines.values() if engine.process is not None]
        for process in processes:
            process.ask_to_stop()
        for process in processes:
            process.stop()

    def _start(self, engine: Engine, engines: list[Engine]) -> None:
        bound = engine_start.engines_at_once()
        warm = [one for one in engines if one.process is not None]
        if bound is not None and len(warm) >= bound:
            unused = [one for one in warm if time.monotonic() - one.asked > IN_USE_SECONDS]
            if not unused:
                return
            self._end(min(unused, key=lambda one: one.asked), "stopped", "made room for another model")
        config = settings()
        folder = config.models_folder / engine.model["id"]
        if not config.engine_command and not (folder / "config.json").exists():
            why = f"the model is not in {folder}; make it with: python -m gpu_jobs.prepare"
            self._turn(engine, "failed", why)
            return
        with_adapters = engine.adapters_wanted
        engine.process = EngineProcess(
            engine.model, records=self._records, logs=self._logs, adapters=with_adapters
        )
        engine.users = {}
        if with_adapters:
            engine.adapters = loading.adapters_of(engine.process, self._log)
        engine.refusals, engine.probed, engine.well = 0, time.monotonic(), time.monotonic()
        self._turn(engine, "starting")

    def _look_after(self, engine: Engine, process: EngineProcess) -> None:
        now = time.monotonic()
        seconds = now - engine.since
        code = process.exit_code
        if code is not None:
            why = f"its server ended (exit code {code}) after {seconds:.0f} s; see {process.log}"
            self._end(engine, "failed" if engine.state == "starting" else "stopped", why)
            return
        if engine.state == "starting":
            self._look_at_start(engine, process, process.health(), seconds)
        if engine.state == "ready" and _must_restart(engine) and not _users(engine, now):
            self._end(engine, "starting", "starts anew, to load adapters")
            return
        if now - engine.probed < PROBE_EVERY_SECONDS:
            return
        engine.probed = now
        process.watch()
        if engine.state == "ready":
            self._look_at_service(engine, process.health(), now)

    def _look_at_start(self, engine: Engine, process: EngineProcess, health: Health, seconds: float) -> None:
        if health is Health.WELL:
            engine.version = process.version()
            engine.well = time.monotonic()
            self._turn(engine, "ready", seconds=round(seconds, 1))
        elif seconds > ENGINE_START_SECONDS_MAX:
            self._end(engine, "failed", f"not healthy after {seconds:.0f} s; see {process.log}")

    def _look_at_service(self, engine: Engine, health: Health, now: float) -> None:
        engine.refusals = engine.refusals + 1 if health is Health.REFUSED else 0
        if health is Health.WELL:
            engine.well = now
        if health is Health.DEAD:
            self._end(engine, "stopped", "it said that it is dead")
        elif engine.refusals >= REFUSALS_MAX:
            self._end(engine, "stopped", "nothing listens any more")
        elif now - engine.well > SILENT_SECONDS_MAX:
            self._end(engine, "stopped", f"no answer for {SILENT_SECONDS_MAX:.0f} s")
        elif now - engine.asked > settings().engine_idle_seconds:
            self._end(engine, "stopped", "idle")

    def _end(self, engine: Engine, state: str, why: str) -> None:
        # Told before it is ended: nobody is sent to an engine that is going away.
        self._turn(engine, state, why)
        if engine.process is not None:
            ended = engine.process.exit_code is not None
            engine.process.stop(seconds=0 if ended else ENGINE_STOP_SECONDS_MAX)
        engine.process, engine.adapters = None, None

    def _turn(self, engine: Engine, state: str, why: str = "", **fields: Any) -> None:
        with self._lock:
            engine.turn(state, why)
        say = self._log.warning if state == "failed" else self._log.info
        say(f"engine {state}", model=engine.model["id"], why=why or None, **fields)


def _must_restart(engine: Engine) -> bool:
    return engine.adapters_wanted and engine.process is not None and engine.adapters is None


def _users(engine: Engine, now: float) -> list[str]:
    return [claim for claim, asked in engine.users.items() if now - asked < IN_USE_SECONDS]


def _told(engine: Engine) -> dict[str, Any]:
    if engine.state == "ready" and engine.process is not None:
        fewest, most = engine_start.lines_at_once()
        return {
            "state": "ready",
            "url": engine.process.url,
            "api_key": engine.process.api_key,
            "engine_version": engine.version,
            "instance": engine.process.instance,
            "lines_at_once": fewest,
            "lines_at_once_max": most,
        }
    if engine.state == "failed":
        return {"state": "failed", "why": engine.why}
    return {"state": "starting"}
