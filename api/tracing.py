"""An id, a log line and a figure for every answer. Bodies, query strings and tokens are never logged."""

import logging
import time

from flask import Flask, Response, g, request

from gridline import ids
from gridline.telemetry import logs, metrics

_LOG = logging.getLogger("gridline.api")
_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"})
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})


def install(app: Flask) -> None:
    """Hook into every request of the application."""
    app.before_request(_begin)
    app.after_request(_end)
    app.teardown_request(_forget)


def _begin() -> None:
    # A client's own x-request-id is never the key of anything, so it is not taken over.
    g.request_id = ids.new("request")
    g.begun = time.monotonic()
    logs.REQUEST_ID.set(g.request_id)


def _end(response: Response) -> Response:
    seconds = time.monotonic() - g.begun
    method = request.method if request.method in _METHODS else "other"
    route = request.url_rule.rule if request.url_rule else "unknown"
    response.headers.extend(
        {
            "x-request-id": g.request_id,
            "openai-processing-ms": str(int(seconds * 1000)),
            "X-Content-Type-Options": "nosniff",
        }
    )
    metrics.HTTP_REQUESTS.labels(method, route, str(response.status_code)).inc()
    metrics.HTTP_REQUEST_SECONDS.labels(method, route).observe(seconds)
    if route not in _QUIET:
        caller = g.get("caller")
        figures = {
            "method": method,
            "route": route,
            "status": response.status_code,
            "milliseconds": int(seconds * 1000),
            "account_id": caller.account_id if caller else None,
            "token_id": caller.token_id if caller else None,
        }
        _LOG.info("answered", extra=figures)
    return response


def _forget(_error: BaseException | None) -> None:
    logs.REQUEST_ID.set(None)
