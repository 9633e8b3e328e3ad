"""The adapters of one running engine: which jobs need which, and what is loaded and unloaded for them.

A job claims all that its partition needs at once, and gets them together or waits, in the order of asking: two jobs that
each hold half of what the other needs would wait for ever. Nothing that a granted claim names is ever unloaded.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from gpu_jobs.logs import Log
from gridline.lines.adapters import Adapter, count_max

CLAIM_SECONDS = 30.0
"""A job asks every few seconds; one that did not for this long has ended."""
TRIES_MAX = 3
TRY_AGAIN_SECONDS = 2.0


class LoadRefused(Exception):
    """Raised when an adapter cannot be loaded, however often it is tried."""


class LoadFailed(Exception):
    """Raised when loading failed for a reason that may pass: the store or the engine did not answer."""


@dataclass
class Claim:
    """What one job needs."""

    wanted: dict[str, Adapter]
    since: float
    asked: float
    granted: bool = False


@dataclass(frozen=True)
class Standing:
    """Where a claim stands; ``failed`` says by id why an adapter is not there."""

    ready: bool
    failed: dict[str, str] = field(default_factory=dict)


class EngineAdapters:
    """The adapters of one engine process; it starts with none."""

    def __init__(
        self,
        by_rank: Sequence[Sequence[int]],
        *,
        load: Callable[[Adapter], None],
        unload: Callable[[Adapter], None],
        log: Log,
    ) -> None:
        """``load`` and ``unload`` make the engine do so; they may take long and raise LoadRefused or LoadFailed."""
        self._by_rank, self._load, self._unload, self._log = by_rank, load, unload, log
        self._lock = threading.Lock()
        self._claims: dict[str, Claim] = {}
        self._loaded: dict[str, Adapter] = {}
        """In the order of their last use, the longest unused first."""
        self._failed: dict[str, str] = {}
        self._works = False

    def ask(self, claim: str, adapters: Iterable[Adapter]) -> Standing:
        """Claim these for a job, or keep them claimed, and learn whether they are there."""
        now = time.monotonic()
        with self._lock:
            self._claims = {key: one for key, one in self._claims.items() if now - one.asked < CLAIM_SECONDS}
            own = self._claims.get(claim)
            if own is None:
                own = self._claims[claim] = Claim({one.id: one for one in adapters}, now, now)
                for name in own.wanted:
                    # A new job tries again what failed for another one.
                    self._failed.pop(name, None)
            own.asked = now
            self._grant()
            if not own.granted:
                return Standing(ready=False)
            for name in own.wanted.keys() & self._loaded.keys():
                self._loaded[name] = self._loaded.pop(name)
            if self._missing() and not self._works:
                self._works = True
                threading.Thread(target=self._work, daemon=True).start()
            missing = own.wanted.keys() - self._loaded.keys() - self._failed.keys()
            failed = {name: self._failed[name] for name in own.wanted.keys() & self._failed.keys()}
            return Standing(ready=not missing, failed=failed)

    def loaded(self) -> list[str]:
        """Ids of what is loaded now."""
        with self._lock:
            return sorted(self._loaded)

    def _grant(self) -> None:
        """The oldest claims first, as long as all that is granted goes together."""
        for one in sorted(self._claims.values(), key=lambda one: one.since):
            if not one.granted and not self._fits({**self._in_use(), **one.wanted}):
                return
            one.granted = True

    def _in_use(self) -> dict[str, Adapter]:
        return {
            name: adapter
            for one in self._claims.values()
            if one.granted
            for name, adapter in one.wanted.items()
        }

    def _fits(self, adapters: dict[str, Adapter]) -> bool:
        return len(adapters) <= count_max(self._by_rank, (one.rank for one in adapters.values()))

    def _missing(self) -> Adapter | None:
        used = self._in_use()
        names = used.keys() - self._loaded.keys() - self._failed.keys()
        return used[min(names)] if names else None

    def _work(self) -> None:
        """Load what is missing, one after another."""
        while True:
            with self._lock:
                adapter = self._missing()
                if adapter is None:
                    self._works = False
                    return
                idle = self._too_many(adapter)
            for one in idle:
                self._told("unload", one, self._unload)
                with self._lock:
                    self._loaded.pop(one.id, None)
            why = self._told("load", adapter, self._load)
            with self._lock:
                if why is None:
                    self._loaded[adapter.id] = adapter
                else:
                    self._failed[adapter.id] = why

    def _too_many(self, adapter: Adapter) -> list[Adapter]:
        """What must go before this one can be loaded: what nobody uses, the longest unused first."""
        rest, used, gone = {**self._loaded, adapter.id: adapter}, self._in_use(), []
        for name in self._loaded:
            if self._fits(rest):
                break
            if name not in used:
                gone.append(rest.pop(name))
        return gone

    def _told(self, what: str, adapter: Adapter, act: Callable[[Adapter], None]) -> str | None:
        """Do it, again when it may help; why it did not work, or None."""
        start = time.monotonic()
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                act(adapter)
            except (LoadRefused, LoadFailed) as error:
                self._log.warning(f"adapter {what} failed", adapter=adapter.id, why=str(error))
                if isinstance(error, LoadRefused) or not tries_left:
                    return str(error)
                time.sleep(TRY_AGAIN_SECONDS)
            else:
                self._log.info(
                    f"adapter {what}ed", adapter=adapter.id, seconds=round(time.monotonic() - start, 2)
                )
                return None
        return None
