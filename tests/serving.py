"""The API as an own process, and a client beside the others that says how it fares."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
from sqlalchemy import Engine

from tests.conftest import free_port

ROOT = Path(__file__).resolve().parents[1]
PEPPER = "pepper"


def close_in_its_loop(server: Any) -> None:
    """Have a waitress server's own loop close it; it then reads nothing more and its ``run`` returns.

    Queued and woken under one lock: else the loop, awake for another reason, may close the very pipe that wakes it first.
    """
    trigger = server.trigger
    with trigger.lock:
        trigger.thunks.append(server.close)
        trigger.pull_trigger()


@dataclass
class Served:
    """A running ``python -m api.serve``."""

    process: subprocess.Popen[bytes]
    url: str

    def peak_megabytes(self) -> int:
        """The most memory it ever had in use."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [one for one in status.splitlines() if one.startswith("VmHWM")]
        return int(line.split()[1]) // 1000


@contextmanager
def serving(database: Engine, folder: Path, **more: str) -> Iterator[Served]:
    """One process on a free port, ready; its store is the folder's ``objects``. ``more`` is further environment."""
    port = free_port()
    environ = {
        "PATH": os.environ["PATH"],
        "GRIDLINE_DATABASE_URL": database.url.render_as_string(hide_password=False),
        "GRIDLINE_STORE_URL": (folder / "objects").as_uri(),
        "GRIDLINE_STATE_DIR": str(folder),
        "GRIDLINE_TOKEN_PEPPER": PEPPER,
        "GRIDLINE_API_PORT": str(port),
        **more,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "api.serve"], cwd=ROOT, env=environ, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: httpx.get(f"{url}/readyz", verify=False).status_code == 200)
        yield Served(process, url)
    finally:
        process.kill()
        process.wait()


def until(true: Callable[[], object], seconds: float = 60) -> None:
    """Wait for a condition; connection errors count as not yet."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if true():
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise TimeoutError


@dataclass
class Poller:
    """Asks for one address again and again, on one connection as an SDK does, and notes how long each answer took."""

    url: str
    token: str
    every_seconds: float
    seconds: list[float] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)

    @property
    def p95(self) -> float:
        """Seconds that 95 of 100 answers took at most."""
        return sorted(self.seconds)[len(self.seconds) * 95 // 100]

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Poll in a thread of its own while the block runs."""
        stop = Event()
        thread = Thread(target=self._poll, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _poll(self, stop: Event) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        with httpx.Client(headers=headers, timeout=60, verify=False) as client:
            while not stop.is_set():
                begun = time.monotonic()
                self.statuses.add(client.get(self.url).status_code)
                self.seconds.append(time.monotonic() - begun)
                stop.wait(max(0.0, self.every_seconds - self.seconds[-1]))
