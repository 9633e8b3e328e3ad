"""Every failure as OpenAI's error object in JSON, with the headers that tell an SDK whether trying again helps."""

import logging
import math

from flask import Flask, Response, g, jsonify
from werkzeug.exceptions import HTTPException, RequestedRangeNotSatisfiable

from gridline.errors import GridlineError, LimitExceeded, NotAuthenticated, RateExceeded

RETRY_AFTER_SECONDS = 2
LIMIT_RETRY_AFTER_SECONDS = 60
"""No SDK sleeps longer than this for us; some would give up, some would sleep for whatever we say."""

CAUSE_CHARS_MAX = 500

_LOG = logging.getLogger("gridline.api")
_CODES = {
    404: ("unknown_url", "There is nothing at this address. See the API reference for the paths."),
    405: ("method_not_allowed", "This address does not take this method."),
    413: ("request_too_large", "The request's body is too large."),
    415: ("unsupported_media_type", "The request's body has a type or an encoding that is not taken here."),
    416: ("range_not_satisfiable", "The requested range lies outside the file."),
}


def install(app: Flask) -> None:
    """Answer for our own errors, for the framework's, and for bugs."""
    app.register_error_handler(GridlineError, _ours)
    app.register_error_handler(HTTPException, _framework)
    app.register_error_handler(Exception, _bug)


def _ours(error: GridlineError) -> Response:
    if error.status >= 500:  # noqa: PLR2004 - HTTP's own border
        _tell(error)
    response = jsonify(error.body())
    response.status_code = error.status
    _advise(response, retryable=error.retryable)
    if isinstance(error, RateExceeded):
        _advise_to_wait(response, error.wait_seconds)
    if isinstance(error, NotAuthenticated):
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, LimitExceeded):
        response.headers["Retry-After"] = str(LIMIT_RETRY_AFTER_SECONDS)
    return response


def _tell(error: GridlineError) -> None:
    """A bug whole; of what is away what it said first, since the rest may repeat what was asked of it."""
    if not error.retryable:
        _LOG.error("An error that should never show itself.", exc_info=error)
        return
    cause = str(error.__cause__ or "").strip().partition("\n")[0]
    _LOG.warning("%s %s", error.message, cause[:CAUSE_CHARS_MAX])


def _framework(error: HTTPException) -> Response:
    status = error.code or 500
    if status >= 500:  # noqa: PLR2004 - HTTP's own border
        return _bug(error)
    code, message = _CODES.get(
        status, ("invalid_request", error.description or "The request cannot be read.")
    )
    body = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    response = jsonify({"error": body})
    response.status_code = status
    _advise(response, retryable=False)
    valid_methods = getattr(error, "valid_methods", None)
    if valid_methods:
        response.headers["Allow"] = ", ".join(sorted(valid_methods))
    if isinstance(error, RequestedRangeNotSatisfiable) and error.length is not None:
        response.headers["Content-Range"] = f"bytes */{error.length}"
    return response


def _bug(error: Exception) -> Response:
    _LOG.error("An error that nobody foresaw.", exc_info=error)
    message = (
        "The server had an error while processing your request. Try again; "
        f"if it goes on, write to the operator with the request id {g.get('request_id')}."
    )
    body = {"message": message, "type": "server_error", "param": None, "code": "server_error"}
    response = jsonify({"error": body})
    response.status_code = 500
    return response


def _advise(response: Response, *, retryable: bool) -> None:
    """SDKs retry 408, 409, 429 and 5xx by themselves; what cannot heal says so, what can says when."""
    if retryable:
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    else:
        response.headers["x-should-retry"] = "false"


def _advise_to_wait(response: Response, seconds: float) -> None:
    """SDKs try twice more and wait for a minute at most each time: what takes longer is not worth the tries."""
    response.headers["Retry-After"] = str(min(max(1, math.ceil(seconds)), LIMIT_RETRY_AFTER_SECONDS))
    if seconds > 2 * LIMIT_RETRY_AFTER_SECONDS:
        response.headers["x-should-retry"] = "false"
