"""Sliding windows that count what comes in a short time. Knows no HTTP, and not what is counted.

The library ``limits`` counts in the storage that an address names, or this process does (memory://). When a storage
fails everything passes: a limit protects the service and must not be what takes it down.
"""

import logging
import math
import time
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from limits import RateLimitItem
from limits.storage import SlidingWindowCounterSupport, storage_from_string

from gridline.errors import SettingInvalid
from gridline.telemetry import metrics

MEMORY = "memory://"
STORAGE_SECONDS_MAX = 0.5
"""A storage that takes longer counts as failed."""
REST_SECONDS = 1.0
"""A storage that failed is left alone for so long, or every request would wait for it."""

_LOG = logging.getLogger("gridline.api")
_T = TypeVar("_T")


class Use(NamedTuple):
    """What of a limit is left, and how long until it is all free and until what was asked fits, in seconds."""

    limit: int
    remaining: int
    reset_seconds: float
    wait_seconds: float


class Storage(Protocol):
    """What of the library's storages is used."""

    def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count ``amount`` if it fits; whether it did."""

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """The count of the window before and seconds that it still has weight, that of this one and its life."""


class Memory:
    """The windows of this process: exact whatever comes at once.

    The library's own storage starts a thread every 10 ms while it is used, a tenth of what a poll costs in all.
    """

    SWEEP_SECONDS = 60.0

    def __init__(self) -> None:
        self._lock = Lock()
        # By key: length in seconds, number of the window since the clock began, count before it, count in it.
        self._windows: dict[str, tuple[int, int, int, int]] = {}
        self._sweep_at = time.monotonic() + self.SWEEP_SECONDS

    def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count ``amount`` if it fits; whether it did."""
        moment = time.monotonic()
        with self._lock:
            self._sweep(moment)
            number, before, now = self._counts(key, expiry, moment)
            weight = before * (1 - moment / expiry % 1) + now
            if math.floor(weight) + amount > limit:
                return False
            self._windows[key] = (expiry, number, before, now + amount)
            return True

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """The count of the window before and seconds that it still has weight, that of this one and its life."""
        moment = time.monotonic()
        _, before, now = self._counts(key, expiry, moment)
        ends_in = (1 - moment / expiry % 1) * expiry
        return before, ends_in, now, ends_in + expiry

    def _counts(self, key: str, seconds: int, moment: float) -> tuple[int, int, int]:
        current = int(moment / seconds)
        _, number, before, now = self._windows.get(key, (seconds, current, 0, 0))
        if number == current:
            return current, before, now
        return current, now if number == current - 1 else 0, 0

    def _sweep(self, moment: float) -> None:
        if moment < self._sweep_at:
            return
        self._sweep_at = moment + self.SWEEP_SECONDS
        self._windows = {key: one for key, one in self._windows.items() if one[1] >= int(moment / one[0]) - 1}


class Windows:
    """Sliding windows in a storage, which stand in nobody's way when it fails."""

    def __init__(self, storage_url: str) -> None:
        """Waits for no connection.

        Raises:
            SettingInvalid: there is no such storage, it has no sliding windows, or its client is not installed.
        """
        self._storage = Memory() if storage_url == MEMORY else _opened(storage_url)
        self._rests_until = 0.0

    def take(self, item: RateLimitItem, key: str, cost: int = 1) -> bool:
        """Count that much if it fits; whether it did."""
        name, seconds = item.key_for(key), item.get_expiry()
        return self._asked(
            lambda: self._storage.acquire_sliding_window_entry(name, item.amount, seconds, cost), failed=True
        )

    def look(self, item: RateLimitItem, key: str, cost: int = 1) -> Use | None:
        """How much is used, ``cost`` being what is wanted next; None when the storage failed."""
        name, seconds = item.key_for(key), item.get_expiry()
        seen = self._asked(lambda: self._storage.get_sliding_window(name, seconds), failed=None)
        if seen is None:
            return None
        before, fades_in, now, ends_in = seen
        used = math.floor(before * fades_in / seconds + now)
        waits = [
            _seconds_until_below(below, seconds, (before, fades_in, now, max(0.0, ends_in - seconds)))
            for below in (1, item.amount - cost + 1)
        ]
        return Use(item.amount, max(0, item.amount - used), *waits)

    def _asked(self, ask: Callable[[], _T], *, failed: _T) -> _T:
        if time.monotonic() >= self._rests_until:
            try:
                return ask()
            except Exception as error:  # noqa: BLE001 - whatever the storage's client raises, requests pass
                self._rests_until = time.monotonic() + REST_SECONDS
                _LOG.warning("Rates are not counted: their storage failed (%s).", type(error).__name__)
        metrics.RATE_ERRORS.inc()
        return failed


def _opened(storage_url: str) -> Storage:
    try:
        storage = storage_from_string(
            storage_url, socket_timeout=STORAGE_SECONDS_MAX, socket_connect_timeout=STORAGE_SECONDS_MAX
        )
    except Exception as error:  # noqa: BLE001 - an unknown scheme, a missing client, or what that client refuses
        # The address may hold a password.
        why = str(error).replace(storage_url, f"{urlsplit(storage_url).scheme}://…")
        raise SettingInvalid(f"GRIDLINE_RATE_STORAGE cannot be used: {why}.") from None
    if not isinstance(storage, SlidingWindowCounterSupport):
        raise SettingInvalid("GRIDLINE_RATE_STORAGE names a storage without sliding windows. Use redis://.")
    return storage


def _seconds_until_below(below: int, seconds: int, window: tuple[int, float, int, float]) -> float:
    """When the weighted count falls below a number: the window before fades, then this one does."""
    before, fades_in, now, ends_in = window
    if below < 1:
        return float(seconds)
    if before * fades_in / seconds + now < below:
        return 0.0
    if now < below:
        return fades_in - (below - now) * seconds / before
    return ends_in + seconds * (1 - below / now)
