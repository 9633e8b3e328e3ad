"""Sliding windows: exact under load, honest about the wait, and out of the way when they cannot count."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import limits as library
import pytest

from api import windows as windows_module
from api.windows import Memory, Windows
from gridline.errors import SettingInvalid
from tests.conftest import free_port

MINUTE = library.RateLimitItemPerMinute(100, namespace="test")
STORAGES = ["memory://", "memory://the-library"]
"""Our own, and one of the library's: a storage elsewhere is asked in the same words."""


class Clock:
    """Both clocks that windows look at, moved by the test."""

    def __init__(self) -> None:
        self.seconds = 6_000_000.0

    def monotonic(self) -> float:
        """Now, for what happens in this process."""
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Stands at the beginning of a minute until the test moves it."""
    clock = Clock()
    monkeypatch.setattr(windows_module, "time", clock)
    monkeypatch.setattr(time, "time", clock.monotonic)
    return clock


@pytest.mark.parametrize("storage", STORAGES)
def test_a_limit_is_met_and_passes(storage: str, clock: Clock) -> None:
    """A hundred fit, no more; the use is told, of one key only; a window later all of it is free again."""
    windows = Windows(storage)
    assert all(windows.take(MINUTE, "ann") for _ in range(100))
    assert not windows.take(MINUTE, "ann")
    assert windows.take(MINUTE, "bob")
    use = windows.look(MINUTE, "ann")
    assert use is not None
    assert (use.limit, use.remaining) == (100, 0)
    clock.seconds += 120
    use = windows.look(MINUTE, "ann")
    assert use is not None
    assert (use.remaining, use.reset_seconds, use.wait_seconds) == (100, 0, 0)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("seed", range(5))
def test_the_wait_that_is_told_is_enough(storage: str, seed: int, clock: Clock) -> None:
    """Whatever was used when, a request that is refused fits after the wait (rounded up), and not well before it."""
    chance = random.Random(seed)
    windows = Windows(storage)
    refused = 0
    for _ in range(200):
        clock.seconds += chance.choice((0, 0.1, 1, 7, 45))
        cost = chance.choice((1, 5, 30, 100))
        use = windows.look(MINUTE, "ann", cost)
        assert use is not None
        if windows.take(MINUTE, "ann", cost):
            assert use.wait_seconds == 0
            continue
        refused += 1
        assert 0 < use.wait_seconds <= 120
        if use.wait_seconds > 0.2:
            clock.seconds += use.wait_seconds - 0.1
            assert not windows.take(MINUTE, "ann", cost)
            clock.seconds += 0.1
        else:
            clock.seconds += use.wait_seconds
        clock.seconds += 0.01
        assert windows.take(MINUTE, "ann", cost)
    assert refused > 10


def test_what_never_fits_is_refused(clock: Clock) -> None:
    """More than the whole limit at once, or a limit of none: a refusal with a wait, and no error."""
    windows = Windows("memory://")
    none = library.RateLimitItemPerMinute(0, namespace="test")
    for item, cost in ((MINUTE, 101), (none, 1)):
        assert not windows.take(item, "ann", cost)
        use = windows.look(item, "ann", cost)
        assert use is not None
        assert use.wait_seconds > 0


def test_many_at_once_get_exactly_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen threads get a hundred of a limit of a hundred, also when each pauses between its look and its count."""
    look = Memory._counts

    def pausing(*given: Any) -> tuple[int, int, int]:
        seen = look(*given)
        time.sleep(0.0005)
        return seen

    monkeypatch.setattr(Memory, "_counts", pausing)
    windows = Windows("memory://")
    hour = library.RateLimitItemPerHour(100, namespace="test")
    with ThreadPoolExecutor(16) as pool:
        taken = list(pool.map(lambda _: windows.take(hour, "ann"), range(300)))
    assert sum(taken) == 100


def test_keys_that_are_over_are_forgotten(clock: Clock) -> None:
    """Memory holds what still counts: an address that guessed an hour ago takes no room."""
    windows = Windows("memory://")
    for number in range(1_000):
        windows.take(MINUTE, f"key {number}")
    clock.seconds += 300
    windows.take(MINUTE, "ann")
    assert len(windows._storage._windows) == 1  # type: ignore[attr-defined]


def test_a_redis_that_is_away_lets_everything_through() -> None:
    """The process starts, requests pass uncounted, and no use is told that nobody knows."""
    windows = Windows(f"redis://127.0.0.1:{free_port()}")
    assert all(windows.take(MINUTE, "ann") for _ in range(200))
    assert windows.look(MINUTE, "ann") is None


WRONG = [
    "",
    "nothing://user:hidden@host",
    "memcached://user:hidden@host",
    "redis://user:hidden@host:port",
    "memory",
]


@pytest.mark.parametrize("url", WRONG)
def test_a_storage_that_cannot_be_used_stops_the_start(url: str) -> None:
    """A wrong address, or one whose client is not installed, is named by its setting, without its password."""
    with pytest.raises(SettingInvalid, match="GRIDLINE_RATE_STORAGE") as caught:
        Windows(url)
    assert "hidden" not in str(caught.value)
