"""Runs one call in many threads from one barrier, for tests of races."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

T = TypeVar("T")


def together(times: int, call: Callable[[], T]) -> list[T | Exception]:
    """What each of the calls returned or raised, all started at the same moment."""
    start = Barrier(times)

    def one() -> T | Exception:
        start.wait()
        try:
            return call()
        except Exception as error:  # noqa: BLE001  # the test looks at it
            return error

    with ThreadPoolExecutor(times) as pool:
        return [future.result() for future in [pool.submit(one) for _ in range(times)]]
