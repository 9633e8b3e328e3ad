"""The error tree. Every error says what, the limit, the value and the next step, in OpenAI's terms.

    GridlineError                     code, status, type, param, next_step
    ├── SettingInvalid                a setting that cannot be used (process exits)
    ├── Refused                       the caller must change something first; never retried as it is
    │   ├── InvalidRequest            400 invalid_request_error
    │   ├── NotAuthenticated          401 invalid_api_key
    │   ├── NotPermitted              403 insufficient_permissions
    │   ├── NotFound                  404 (missing and foreign are the same)
    │   ├── Conflict                  409 (a state that forbids the call)
    │   ├── TooLarge                  413
    │   └── LimitExceeded             429 limit_exceeded, with limit and use
    ├── RateExceeded                  429 rate_limit_exceeded, too much in a short time: waiting helps
    ├── Unavailable                   503, a dependency is away: retrying helps
    └── InvariantBroken               a promise of ours does not hold; nothing was written

Rooms add subclasses in their own ``errors.py``. Source of codes: docs/errors.md.
"""

from typing import Any, ClassVar


class GridlineError(Exception):
    """Root of every error that a caller may see."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    default_code: ClassVar[str | None] = "server_error"
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        limit: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.param = param
        self.limit = limit

    def body(self) -> dict[str, Any]:
        """OpenAI's error object: message, type, param and code, and ``limit`` where one was met."""
        error: dict[str, Any] = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        if self.limit is not None:
            error["limit"] = self.limit
        return {"error": error}


class SettingInvalid(GridlineError):
    """Raised when the environment holds a value that cannot be used."""


class Refused(GridlineError):
    """Raised when the caller must change something before the call can succeed."""

    status = 400
    type = "invalid_request_error"
    default_code: ClassVar[str | None] = None


class InvalidRequest(Refused):
    """Raised for a request that is wrong in itself."""


class NotAuthenticated(Refused):
    """Raised when the bearer token is missing, malformed, unknown, expired or revoked."""

    status = 401
    type = "authentication_error"
    default_code = "invalid_api_key"


class NotPermitted(Refused):
    """Raised when the token lacks the scope that the call needs."""

    status = 403
    type = "permission_error"
    default_code = "insufficient_permissions"


class NotFound(Refused):
    """Raised for what does not exist and, alike, for what belongs to another account."""

    status = 404
    default_code = "not_found"


class Conflict(Refused):
    """Raised when the object's state forbids the call."""

    status = 409
    default_code = "conflict"


class TooLarge(Refused):
    """Raised when a body or file is over its limit."""

    status = 413
    default_code = "file_too_large"


class LimitExceeded(Refused):
    """Raised when an account's limit is used up; ``limit`` holds the limit and the current use."""

    status = 429
    type = "rate_limit_error"
    default_code = "limit_exceeded"


class RateExceeded(GridlineError):
    """Raised when too much came in a short time; ``limit`` holds the limit and the use, ``wait_seconds`` what helps."""

    status = 429
    type = "rate_limit_error"
    default_code = "rate_limit_exceeded"
    retryable = True

    def __init__(self, message: str, *, limit: dict[str, Any], wait_seconds: float) -> None:
        super().__init__(message, limit=limit)
        self.wait_seconds = wait_seconds


class Unavailable(GridlineError):
    """Raised when a dependency (database, store, Airflow, engine) is away for now."""

    status = 503
    default_code = "service_unavailable"
    retryable = True


class InvariantBroken(GridlineError):
    """Raised instead of writing something that would break a promise; always a bug of ours."""
