"""Who is signed in: an opaque id in the browser's cookie, the token or the API session's secret only here, in memory.

Ids are kept as hashes; a session ends by signing out, when idle for long, when old, or when the API
refuses what it holds.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock

from gridline.client import Account, Client, ClientError

COOKIE = "gridline_session"
ID_BYTES = 32
IDLE_SECONDS_MAX = 8 * 3600
AGE_SECONDS_MAX = 7 * 24 * 3600
SESSIONS_MAX = 10_000


@dataclass
class Session:
    """One sign-in: a client with the token, and whose it is."""

    client: Client
    account_id: str
    account_name: str
    started: float
    seen: float
    told: ClientError | None = None
    """Why the last upload was refused, until a page has said so."""
    email: str = ""
    """The user's, who may make tokens; "" where a token signed in, which may not."""


@dataclass
class Sessions:
    """All sign-ins of this process. ``monotonic`` gives seconds that never go back."""

    monotonic: Callable[[], float] = time.monotonic
    _found: dict[str, Session] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def start(self, client: Client, account: Account, *, email: str = "") -> str:
        """Sign in; returns the id for the cookie, which is stored nowhere. The oldest gives way when full."""
        key = secrets.token_urlsafe(ID_BYTES)
        moment = self.monotonic()
        with self._lock:
            self._found[_hash(key)] = Session(client, account.id, account.name, moment, moment, email=email)
            while len(self._found) > SESSIONS_MAX:
                self._drop(next(iter(self._found)))
        return key

    def find(self, key: str) -> Session | None:
        """The session of a cookie, if it is still good; looking counts as use."""
        moment = self.monotonic()
        with self._lock:
            session = self._found.get(_hash(key))
            if session is None:
                return None
            if moment - session.seen > IDLE_SECONDS_MAX or moment - session.started > AGE_SECONDS_MAX:
                self._drop(_hash(key))
                return None
            session.seen = moment
            return session

    def end(self, key: str) -> None:
        """Sign out; an unknown id is fine. What the session was still reading or downloading ends too."""
        with self._lock:
            self._drop(_hash(key))

    def _drop(self, key_hash: str) -> None:
        session = self._found.pop(key_hash, None)
        if session is not None:
            session.client.close()


def _hash(key: str) -> str:
    return sha256(key.encode()).hexdigest()


SESSIONS = Sessions()
