"""What a call to the API can raise: one error, whether the API refused or could not be reached.

ClientError    code, message, status, request_id
"""

from http import HTTPStatus


class ClientError(Exception):
    """Raised when a call has no usable answer.

    ``code`` is the API's own code, or ``unreachable`` (no answer), ``timeout`` (no answer in time),
    ``unreadable`` (an answer that is not the API's) or ``closed`` (the client was closed meanwhile). ``status`` is the HTTP status, None without an answer.
    ``request_id`` names the call in the API's logs, None without an answer.
    """

    def __init__(
        self, message: str, *, code: str | None, status: int | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.request_id = request_id

    @property
    def token_refused(self) -> bool:
        """Whether the API no longer takes the token: only signing in again helps."""
        return self.status == HTTPStatus.UNAUTHORIZED

    @property
    def not_found(self) -> bool:
        """Whether the object does not exist, or belongs to another account: the API tells no difference."""
        return self.status == HTTPStatus.NOT_FOUND
