"""How a GPU job reaches engines: asks the engine keeper, then talks to the engine over HTTP."""

import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from gridline.lines.adapters import Adapter

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Everything here is plain HTTP on this host: an empty context spares reading every certificate at each start."""

ASK_SECONDS = 10
HEALTH_SECONDS = 30
CONNECT_SECONDS = 10


class KeeperAway(Exception):
    """Raised when the engine keeper does not answer."""


@dataclass(frozen=True)
class Engine:
    """A ready engine."""

    url: str
    api_key: str
    version: str | None
    instance: str
    """Changes with every start."""
    lines_at_once: int
    """Of the heaviest lines."""
    lines_at_once_max: int
    """Of light ones."""
    adapters_failed: dict[str, str] = field(default_factory=dict)
    """By id why an adapter that was asked for is not there."""


@dataclass(frozen=True)
class Asked:
    """Where a wanted engine stands: an engine when ready, a reason when failed, neither when starting."""

    engine: Engine | None = None
    failure: str | None = None


class EngineKeeper:
    """The engine keeper of this host."""

    def __init__(self, path: Path) -> None:
        transport = httpx.AsyncHTTPTransport(uds=str(path), verify=NO_TLS)
        self._client = httpx.AsyncClient(
            transport=transport,
            base_url="http://engines",
            timeout=ASK_SECONDS,
            trust_env=False,
            verify=NO_TLS,
        )

    async def ask(self, model: dict[str, Any], *, claim: str = "", adapters: Sequence[Adapter] = ()) -> Asked:
        """Want the model's engine and these adapters; asking again, by the same claim, keeps them.

        Raises:
            KeeperAway: nobody answers on the socket.
        """
        wanted = {**model, "claim": claim, "adapters": [one.as_dict() for one in adapters]}
        try:
            answer = (await self._client.post("/engines", json=wanted)).json()
        except (httpx.TransportError, ValueError) as error:
            raise KeeperAway from error
        if answer["state"] == "failed":
            return Asked(failure=str(answer["why"]))
        if answer["state"] != "ready":
            return Asked()
        return Asked(
            Engine(
                url=answer["url"],
                api_key=answer["api_key"],
                version=answer["engine_version"],
                instance=answer["instance"],
                lines_at_once=answer["lines_at_once"],
                lines_at_once_max=answer["lines_at_once_max"],
                adapters_failed=answer.get("adapters_failed", {}),
            )
        )

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()


class EngineLink:
    """Connections to one engine, each a client of its own.

    One client with many connections looks at every pair of them for every request (httpcore 1.0): with 128 in flight a
    line took 5.4 ms of this process instead of 1.6.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._clients: list[httpx.AsyncClient] = []
        self._idle: list[httpx.AsyncClient] = []

    async def send(self, path: str, body: str, request_id: str) -> httpx.Response:
        """One request, whatever it answers; httpx.TransportError when the connection is lost."""
        with self._client() as client:
            return await client.post(path, content=body.encode(), headers={"X-Request-Id": request_id})

    async def healthy(self) -> bool:
        """Whether the engine says that it is well."""
        try:
            with self._client() as client:
                answer = await client.get("/health", timeout=HEALTH_SECONDS)
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK

    async def close(self) -> None:
        """Hang up; the engine drops what was in flight."""
        for client in self._clients:
            await client.aclose()

    @contextmanager
    def _client(self) -> Iterator[httpx.AsyncClient]:
        """A client that nobody else uses meanwhile: the one that was used last, whose connection is open still."""
        client = self._idle.pop() if self._idle else self._new()
        try:
            yield client
        finally:
            self._idle.append(client)

    def _new(self) -> httpx.AsyncClient:
        client = httpx.AsyncClient(
            base_url=self._engine.url,
            headers={"Authorization": f"Bearer {self._engine.api_key}", "Content-Type": "application/json"},
            # A line's own bound covers the answer: while it waits in the engine, silence is no fault.
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            # Shorter than the server's own, or a request could meet a connection that it just closed.
            limits=httpx.Limits(max_connections=None, keepalive_expiry=2),
            trust_env=False,
            verify=NO_TLS,
        )
        self._clients.append(client)
        return client
