"""Serves the application with waitress: slow clients cost a socket, not a thread (``python -m api.serve``).

waitress reads a whole request before a thread sees it (large ones from a temporary file) and sends answers from
its own loop, so hundreds of slow connections leave others alone.
"""

import json
import logging
import signal
import sys
from types import FrameType
from typing import Any

from flask import Flask
from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer, create_server
from waitress.task import ErrorTask

from api.app import create_app
from gridline import ids, limits
from gridline.settings import settings
from gridline.telemetry import logs

THREADS = 12
"""Below the database pool's 16 connections, so that no request waits for one."""
CONNECTIONS_MAX = 2_000
HEADERS_BYTES_MAX = 64 * 1024
# Up to here an oversized upload is read to its end and gets a readable 413; beyond, the connection is cut.
BODY_BYTES_MAX = 2 * limits.FILE_BYTES_MAX
# An answer up to here leaves its thread at once and waits on disk for a slow reader.
WAITING_ANSWER_BYTES_MAX = 2 * 1000**3

_LOG = logging.getLogger("gridline.api")


class JsonErrorTask(ErrorTask):  # type: ignore[misc] # waitress ships no types
    """Answers what waitress itself refuses (broken or oversized requests) in the shape of every other error."""

    def execute(self) -> None:
        """Send the error object and close."""
        error = self.request.error
        kind = "server_error" if error.code >= 500 else "invalid_request_error"  # noqa: PLR2004 - HTTP's own border
        message = f"{error.reason}. The request could not be read."
        code = error.reason.lower().replace(" ", "_")
        shown = {"error": {"message": message, "type": kind, "param": None, "code": code}}
        body = json.dumps(shown).encode()
        self.status = f"{error.code} {error.reason}"
        self.response_headers += [
            ("Content-Type", "application/json"),
            ("x-request-id", ids.new("request")),
            ("x-should-retry", "false"),
        ]
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class Channel(HTTPChannel):  # type: ignore[misc] # waitress ships no types
    """A connection whose errors are JSON."""

    error_task_class = JsonErrorTask


def make_server(app: Flask, host: str, port: int) -> Any:
    """A waitress server that is bound and not yet running: ``run()`` serves, ``close()`` ends it."""
    listeners: dict[int, Any] = {}
    server = create_server(
        app,
        map=listeners,
        host=host,
        port=port,
        threads=THREADS,
        connection_limit=CONNECTIONS_MAX,
        # select() ends at 1,024 descriptors.
        asyncore_use_poll=True,
        max_request_header_size=HEADERS_BYTES_MAX,
        max_request_body_size=BODY_BYTES_MAX,
        outbuf_high_watermark=WAITING_ANSWER_BYTES_MAX,
        recv_bytes=256 * 1024,
        ident="gridline",
        clear_untrusted_proxy_headers=True,
    )
    for listener in listeners.values():
        if isinstance(listener, BaseWSGIServer):
            listener.channel_class = Channel
    return server


def main() -> int:
    """Serve until SIGTERM or SIGINT; requests that run get a few seconds to end."""
    logs.configure("api")
    chosen = settings()
    server = make_server(create_app(), chosen.api_host, chosen.api_port)
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    _LOG.info("serving", extra={"host": chosen.api_host, "port": chosen.api_port})
    server.run()
    server.close()
    _LOG.info("stopped")
    return 0


def _stop(_signal: int, _frame: FrameType | None) -> None:
    # waitress takes SystemExit as the wish to stop and lets running requests end.
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main())
