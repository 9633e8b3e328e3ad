"""An OpenID Connect provider as it describes itself: its addresses and its keys, read from it and remembered for an hour.

Who serves customers asks it for keys, who signs them in for addresses. What is read of it is bounded in size and time, comes
over https (or from this machine), and is believed only where it names the very issuer that was asked for.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Lock
from typing import Any

import httpx

from gridline.client.errors import ClientError
from gridline.client.objects import Json
from gridline.declaring import safe_address

TIMEOUT_SECONDS = 5.0
SECONDS_MAX = 10.0
"""For one answer, however slowly it drips."""
BYTES_MAX = 1 << 20
REMEMBERED_SECONDS = 3600.0
KEYS_EVERY_SECONDS = 60.0
"""A key that is not known makes us look again, at most so often: anybody can make one up."""
AWAY_SECONDS = 5.0
"""Who asks so soon after a failure is told of it at once, so that nobody queues behind a provider that is away."""

AWAY = "provider_unreachable"
DISCOVERY = "/.well-known/openid-configuration"


def away(why: str) -> ClientError:
    """The error of a provider that gives no usable answer."""
    return ClientError(f"The identity provider cannot be used for now: {why}.", code=AWAY)


def read_json(method: str, url: str, **more: Any) -> tuple[int, Json]:
    """Status and JSON object of an answer; no redirect is followed.

    Raises:
        ClientError: no answer in time, or one that is no JSON object, or too large.
    """
    secure = url.startswith("https:")
    until = time.monotonic() + SECONDS_MAX
    try:
        # Loopback needs neither certificates, which take long to read, nor a proxy that the environment may name.
        with (
            httpx.Client(timeout=TIMEOUT_SECONDS, verify=secure, trust_env=secure) as http,
            http.stream(method, url, **more) as answer,
        ):
            data = b""
            for chunk in answer.iter_bytes():
                data += chunk
                if len(data) > BYTES_MAX or time.monotonic() > until:
                    raise away("its answer is too large or too slow")
        body = json.loads(data)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # Not the error's own words: they may repeat what was sent.
        raise away(f"no answer from {url.partition('?')[0]} ({type(error).__name__})") from None
    except (ValueError, RecursionError):
        raise away(f"{url.partition('?')[0]} answered {answer.status_code} without JSON") from None
    if not isinstance(body, dict):
        raise away(f"{url.partition('?')[0]} answered with no JSON object")
    return answer.status_code, body


@dataclass
class _Remembered:
    """What was read last, and when; or that it failed."""

    value: Any = None
    read_at: float = 0.0
    error: str = ""
    failed_at: float = 0.0


@dataclass
class Provider:
    """One provider; safe to share between threads. ``monotonic`` gives seconds that never go back."""

    issuer: str
    monotonic: Callable[[], float] = time.monotonic
    read: Callable[..., tuple[int, Json]] = read_json
    _about: _Remembered = field(default_factory=_Remembered)
    _keys: _Remembered = field(default_factory=_Remembered)
    _lock: Lock = field(default_factory=Lock)

    def address(self, name: str) -> str:
        """One of its endpoints, by its name in discovery.

        Raises:
            ClientError: it is away, or names no endpoint that can be used.
        """
        return _address(self.about(), name)

    def about(self) -> Mapping[str, Any]:
        """What it says of itself.

        Raises:
            ClientError: it is away, or says that it is another.
        """
        with self._turn():
            return self._described()

    def keys(self, key_id: str | None) -> Sequence[Json]:
        """Its public keys of that id, or all of them where no id is asked for; as JWK objects.

        Raises:
            ClientError: it is away.
        """
        with self._turn():
            known = self._fresh(self._keys, self._published)
            seen_lately = self.monotonic() - self._keys.read_at < KEYS_EVERY_SECONDS
            if key_id is not None and not _of(known, key_id) and not seen_lately:
                known = self._fresh(self._keys, self._published, again=True)
        return known if key_id is None else _of(known, key_id)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One thread at a time, and no long queue of them behind a provider that is slow."""
        if not self._lock.acquire(timeout=TIMEOUT_SECONDS):
            raise away("it is slow, and others are waiting for it")
        try:
            yield
        finally:
            self._lock.release()

    def _described(self) -> Json:
        found: Json = self._fresh(self._about, self._discovered)
        return found

    def _fresh(self, kept: _Remembered, read: Callable[[], Any], *, again: bool = False) -> Any:
        moment = self.monotonic()
        if kept.value is not None and moment - kept.read_at < REMEMBERED_SECONDS and not again:
            return kept.value
        if kept.error and moment - kept.failed_at < AWAY_SECONDS:
            raise ClientError(kept.error, code=AWAY)
        try:
            kept.value = read()
        except ClientError as error:
            # What was known stays: a look for a new key that fails locks nobody out.
            kept.error, kept.failed_at = error.message, self.monotonic()
            raise
        kept.error, kept.read_at = "", self.monotonic()
        return kept.value

    def _discovered(self) -> Json:
        status, found = self.read("GET", self.issuer.rstrip("/") + DISCOVERY)
        if status != HTTPStatus.OK:
            raise away(f"it answered {status} when asked for what it is")
        if found.get("issuer") != self.issuer:
            raise away("it names another issuer than GRIDLINE_OIDC_ISSUER")
        return found

    def _published(self) -> list[Json]:
        status, found = self.read("GET", _address(self._described(), "jwks_uri"))
        keys = found.get("keys")
        if status != HTTPStatus.OK or not isinstance(keys, list):
            raise away(f"it answered {status} when asked for its keys")
        return [one for one in keys if isinstance(one, dict)]


def _address(about: Mapping[str, Any], name: str) -> str:
    url = about.get(name)
    if not isinstance(url, str) or not safe_address(url):
        raise away(f"what it says of itself has no usable {name}")
    return url


def _of(keys: Sequence[Json], key_id: str) -> list[Json]:
    return [one for one in keys if one.get("kid") == key_id]
