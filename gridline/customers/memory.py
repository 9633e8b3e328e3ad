"""What a process remembers of the tokens and sessions it let in a moment ago. Only good ones: nothing here says no."""

import secrets
import time
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock

BEARERS_MAX = 10_000


@dataclass(frozen=True)
class Bearer:
    """What a live token, or a session, says of its bearer; ``token_id`` is the session's id where there is a user."""

    account_id: str
    token_id: str
    scopes: frozenset[str]
    requests_per_minute_max: int
    user_id: str | None = None


class Memory:
    """Bearers by a hash of their token's text, each until its time; the oldest go first when it is full."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Bearer, float]] = {}
        self._lock = Lock()
        self._secret = secrets.token_bytes(32)

    def get(self, text: str) -> Bearer | None:
        """The bearer, while it is to be believed."""
        bearer, until = self._known.get(self._key(text), (None, 0.0))
        return bearer if time.monotonic() < until else None

    def put(self, text: str, bearer: Bearer, until: float) -> None:
        """Believe it until then, an instant of ``time.monotonic``."""
        key = self._key(text)
        with self._lock:
            self._known.pop(key, None)
            if len(self._known) >= BEARERS_MAX:
                del self._known[next(iter(self._known))]
            self._known[key] = (bearer, until)

    def forget(self, token_id: str) -> None:
        """Believe the token of this id no longer."""
        with self._lock:
            self._known = {key: one for key, one in self._known.items() if one[0].token_id != token_id}

    def _key(self, text: str) -> bytes:
        # Not the hash that is stored: OpenSSL's HMAC costs what half of a poll's own work does.
        return blake2b(text.encode(errors="surrogateescape"), key=self._secret, digest_size=32).digest()
