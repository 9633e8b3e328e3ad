"""Serves the application with waitress: slow clients cost a socket, not a thread (``python -m api.serve``).

waitress receives requests and sends answers in its own loop, so hundreds of slow connections leave others alone.
What its connections do more is in ``api.channel``.
"""

import logging
import resource
import signal
import sys
import time
from functools import partial
from types import FrameType
from typing import Any

from flask import Flask
from waitress.server import BaseWSGIServer, create_server

from api.app import create_app
from api.channel import Channel
from gridline import limits
from gridline.settings import settings
from gridline.telemetry import logs

THREADS = 12
"""Below the database pool's 16 connections, so that no request waits for one."""
CONNECTIONS_MAX = 2_000
FILES_PER_CONNECTION_MAX = 3
"""A socket, a temporary file with the body, and one with the answer."""
FILES_BESIDE = 200
HEADERS_BYTES_MAX = 64 * 1024
# Beyond this a body is refused by its length alone, and the connection closed once the client has read why.
BODY_BYTES_MAX = 2 * limits.FILE_BYTES_MAX
# More of a body than this waits in a temporary file, so that a thousand of them fit into memory.
WAITING_BODY_BYTES_MAX = 64 * 1024
# An answer up to here leaves its thread at once and waits on disk for a slow reader.
WAITING_ANSWER_BYTES_MAX = 2 * 1000**3
IDLE_SECONDS_MAX = 120
"""A kept connection without a request is closed after this; SDKs keep theirs for seconds only."""
WATCH_SECONDS = 5
RECEIVE_BYTES = 1024 * 1024

_LOG = logging.getLogger("gridline.api")


def make_server(app: Flask, host: str, port: int) -> Any:
    """A waitress server that is bound and not yet running: ``run()`` serves, ``close()`` ends it."""
    listeners: dict[int, Any] = {}
    server = create_server(
        app,
        map=listeners,
        host=host,
        port=port,
        threads=THREADS,
        connection_limit=_connections_max(),
        # select() ends at 1,024 descriptors.
        asyncore_use_poll=True,
        max_request_header_size=HEADERS_BYTES_MAX,
        max_request_body_size=BODY_BYTES_MAX,
        outbuf_high_watermark=WAITING_ANSWER_BYTES_MAX,
        inbuf_overflow=WAITING_BODY_BYTES_MAX,
        recv_bytes=RECEIVE_BYTES,
        channel_timeout=IDLE_SECONDS_MAX,
        cleanup_interval=WATCH_SECONDS,
        ident="gridline",
        clear_untrusted_proxy_headers=True,
        **_proxy(settings().trusted_proxy),
    )
    for listener in listeners.values():
        if isinstance(listener, BaseWSGIServer):
            listener.channel_class = Channel
            listener.maintenance = partial(_maintain, listener)
    return server


def _proxy(address: str) -> dict[str, Any]:
    """Whose word counts for where a caller is: of several addresses the last, which that proxy saw itself."""
    if not address:
        return {}
    return {
        "trusted_proxy": address,
        "trusted_proxy_count": 1,
        "trusted_proxy_headers": {"x-forwarded-for"},
    }


def _connections_max() -> int:
    """How many connections there are files for, after asking the system for as many as are wanted."""
    wanted = CONNECTIONS_MAX * FILES_PER_CONNECTION_MAX + FILES_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return CONNECTIONS_MAX
    files = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    # Further ones wait to be accepted: a server without files could serve nobody.
    return min(CONNECTIONS_MAX, (files - FILES_BESIDE) // FILES_PER_CONNECTION_MAX)


def _maintain(listener: Any, now: float) -> None:
    """Close idle connections as waitress does, and those whose client dawdles."""
    BaseWSGIServer.maintenance(listener, now)
    for channel in list(listener.active_channels.values()):
        channel.watch(time.monotonic())


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
