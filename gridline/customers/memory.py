"""What a process remembers of the tokens it let in a moment ago. Only good ones: nothing here says no."""

import time
from dataclasses import dataclass
from threading import Lock

BEARERS_MAX = 10_000


@dataclass(frozen=True)
class Bearer:
    """What a live token says of its bearer."""

    account_id: str
    token_id: str
    scopes: frozenset[str]
    requests_per_minute_max: int


class Memory:
    """Bearers by their token's hash, each until its time; the oldest go first when it is full."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Bearer, float]] = {}
        self._lock = Lock()

    def get(self, key: str) -> Bearer | None:
        """The bearer, while it is to be believed."""
        bearer, until = self._known.get(key, (None, 0.0))
        return bearer if time.monotonic() < until else None

    def put(self, key: str, bearer: Bearer, until: float) -> None:
        """Believe it until then, an instant of ``time.monotonic``."""
        with self._lock:
            self._known.pop(key, None)
            if len(self._known) >= BEARERS_MAX:
                del self._known[next(iter(self._known))]
            self._known[key] = (bearer, until)

    def forget(self, key: str) -> None:
        """Believe it no longer."""
        with self._lock:
            self._known.pop(key, None)
