"""One engine: an OpenAI-shaped server on loopback, in a process group of its own."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from enum import Enum
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from gpu_jobs import engine_start, launch, process_groups
from gpu_jobs.engine_records import EngineRecord, Records
from gridline.limits import ENGINE_STOP_SECONDS_MAX

PROBE_SECONDS = 2
LOAD_SECONDS_MAX = 120
LOG_BYTES_MAX = 20 * 1000 * 1000


class Health(Enum):
    """What an engine's health check said."""

    WELL = "well"
    DEAD = "dead"
    """It says so itself: its core has died and nothing brings it back."""
    REFUSED = "refused"
    """Nothing listens (yet, or any more)."""
    SILENT = "silent"
    """No answer in time: it may only be busy."""


class EngineProcess:
    """A started engine; the thread that makes it must live as long as the engine may (see launch.py)."""

    def __init__(
        self, model: dict[str, Any], *, records: Records, logs: Path, adapters: bool = False
    ) -> None:
        """``adapters``: whether it can load them."""
        self.model = model
        self._adapters = adapters
        self.instance = secrets.token_hex(6)
        self.api_key = secrets.token_urlsafe(32)
        self.log = logs / f"engine-{model['id']}.log"
        folder = Path(tempfile.mkdtemp(prefix="gridline-engine-"))
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._records = records
        self._process = self._started(folder)
        self._record = EngineRecord(
            instance=self.instance,
            model=model["id"],
            group=self._process.pid,
            members={self._process.pid: process_groups.start_time(self._process.pid)},
            folder=str(folder),
            shared_memory=[],
        )
        records.write(self._record)

    def _started(self, folder: Path) -> subprocess.Popen[bytes]:
        program = engine_start.command(self.model, self._port, sys.executable, adapters=self._adapters)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES_MAX:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), *program],
                env=engine_start.environment(self.api_key, folder, adapters=self._adapters),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    @property
    def exit_code(self) -> int | None:
        """How the server's process ended; None while it runs."""
        return self._process.poll()

    def watch(self) -> None:
        """Keep the record of its processes up to date."""
        if self._record.look():
            self._records.write(self._record)

    def health(self) -> Health:
        """Ask the engine whether it is well."""
        try:
            status, _ = self._get("/health")
        except ConnectionRefusedError:
            return Health.REFUSED
        except (OSError, HTTPException):
            return Health.SILENT
        return Health.WELL if status == HTTPStatus.OK else Health.DEAD

    def version(self) -> str:
        """The engine's version, as it says."""
        try:
            return str(json.loads(self._get("/version")[1])["version"])
        except (OSError, HTTPException, ValueError, KeyError, TypeError):
            return "unknown"

    def load(self, adapter_id: str, folder: Path) -> tuple[int, bytes]:
        """Make an adapter answer under its id; status and body. OSError or HTTPException: nobody answered."""
        status, body = self._post(
            "/v1/load_lora_adapter", {"lora_name": adapter_id, "lora_path": str(folder)}
        )
        there = status == HTTPStatus.BAD_REQUEST and b"already been loaded" in body
        return (HTTPStatus.OK if there else status), body

    def unload(self, adapter_id: str) -> tuple[int, bytes]:
        """Drop an adapter; one that is not there is dropped."""
        status, body = self._post("/v1/unload_lora_adapter", {"lora_name": adapter_id})
        return (HTTPStatus.OK if status == HTTPStatus.NOT_FOUND else status), body

    def _post(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=LOAD_SECONDS_MAX)
        headers = {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _get(self, path: str) -> tuple[int, bytes]:
        """Status and body of a GET (the standard library: this is asked every second, and starts fast)."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PROBE_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def ask_to_stop(self) -> None:
        """SIGTERM to the server; with a request in flight it would never end by itself."""
        self._record.look()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def stop(self, *, seconds: float = ENGINE_STOP_SECONDS_MAX) -> None:
        """Give its processes that long to end after SIGTERM, then kill the group and clean up behind it."""
        self.ask_to_stop()
        process_groups.gone(self._process.pid, seconds)
        self._record.look()
        # Unreaped, its pid cannot be anybody else's: the group is killed before the child is collected.
        self._record.end()
        self._process.wait()
        self._records.remove(self._record)


def _free_port() -> int:
    """A port that was free just now; if it is taken meanwhile the engine's start fails and is tried again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
