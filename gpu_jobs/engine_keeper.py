"""Owns every engine of this host, behind a Unix socket; one supervised process.

    POST /engines  {"id", "kind", "engine_arguments", ..., "claim", "adapters"}   200 ready, 202 starting, 503 failed
    GET  /engines                                             what runs, for the operator
    GET  /healthz

Asking for an engine starts it, keeps it warm, and says where it is; nothing needs to be given back.
"""

import json
import os
import re
import signal
import socket
import socketserver
import sys
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

from gpu_jobs.engine_records import Records
from gpu_jobs.engines import Engines
from gpu_jobs.logs import Log
from gridline.limits import JSON_BODY_BYTES_MAX
from gridline.lines.adapters import Adapter
from gridline.settings import settings

TICK_SECONDS = 0.2
STATUS = {"ready": HTTPStatus.OK, "starting": HTTPStatus.ACCEPTED, "failed": HTTPStatus.SERVICE_UNAVAILABLE}
MODEL_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")


class Handler(BaseHTTPRequestHandler):
    """Answers one caller."""

    protocol_version = "HTTP/1.1"
    timeout: ClassVar[float | None] = 60
    server: "Server"

    def do_GET(self) -> None:
        """What runs."""
        if self.path == "/healthz":
            self._answer(HTTPStatus.OK, {"status": "ok"})
        elif self.path == "/engines":
            self._answer(HTTPStatus.OK, {"engines": self.server.engines.listed()})
        else:
            self._answer(HTTPStatus.NOT_FOUND, {"why": "no such path"})

    def do_POST(self) -> None:
        """An engine, please."""
        model = self._model()
        if self.path != "/engines" or model is None:
            # Its body may be unread: this connection is of no further use, and the caller is told so.
            self.close_connection = True
            self._answer(
                HTTPStatus.BAD_REQUEST, {"state": "failed", "why": "not a model of a partition's spec"}
            )
            return
        claim = str(model.pop("claim", ""))
        adapters = [Adapter.from_dict(one) for one in model.pop("adapters", ())]
        answer = self.server.engines.ask(model, claim=claim, adapters=adapters)
        self._answer(STATUS[answer["state"]], answer)

    def _model(self) -> dict[str, Any] | None:
        try:
            length = int(self.headers.get("Content-Length", ""))
            model = json.loads(self.rfile.read(length)) if length <= JSON_BODY_BYTES_MAX else None
        except ValueError:
            return None
        if not isinstance(model, dict):
            return None
        arguments = model.get("engine_arguments")
        fits = (
            MODEL_ID.fullmatch(str(model.get("id")))
            and model.get("kind") in {"chat", "embedding"}
            and isinstance(arguments, list)
            and all(isinstance(one, str) for one in arguments)
            and (model.get("adapters_by_rank") or not model.get("adapters"))
        )
        return model if fits else None

    def _answer(self, status: HTTPStatus, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing: jobs ask every few seconds."""


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """The keeper's socket; only this user may connect."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, path: Path, engines: Engines) -> None:
        self.engines = engines
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            super().__init__(str(path), Handler)
        finally:
            os.umask(mask)

    def handle_error(self, *_: Any) -> None:
        """A caller that hung up is no news; anything else shows in what it asked for."""


def _answered(path: Path) -> bool:
    """Whether another keeper listens on that socket already."""
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
        probe.connect(str(path))
        return True
    return False


def main() -> int:
    """Keep engines until SIGTERM or SIGINT; 1 when another keeper owns this host's socket."""
    config = settings()
    log = Log("engine-keeper")
    if _answered(config.engines_socket):
        log.warning("another engine keeper listens already", socket=str(config.engines_socket))
        return 1
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    records = Records(config.state_dir / "run" / "engines")
    ended = records.end_leftovers()
    if ended:
        log.warning("ended engines of a keeper that died", models=ended)
    engines = Engines(records=records, logs=config.state_dir / "logs", log=log)
    server = Server(config.engines_socket, engines)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    log.info("engine keeper ready", socket=str(config.engines_socket))
    try:
        while not stopping.wait(TICK_SECONDS):
            engines.tick()
    finally:
        config.engines_socket.unlink(missing_ok=True)
        engines.stop_all()
        log.info("engine keeper ended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
