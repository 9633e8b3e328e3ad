"""What comes before the application: reading a request's head, and refusing what waitress itself cannot take."""

import json
import logging

from waitress.parser import HTTPRequestParser, ParsingError
from waitress.task import ErrorTask

from gridline import ids, limits
from gridline.telemetry import logs, metrics

_LOG = logging.getLogger("gridline.api")
_SERVER_ERROR = 500
_FAR_TOO_LARGE = (
    f"The request's body is far larger than {limits.FILE_BYTES_MAX} bytes, the most that one file may have. "
    "Split it into several."
)
_CODES = {
    400: (
        "invalid_http",
        "This is no HTTP/1.1 request that can be read. Send it with an ordinary HTTP client.",
    ),
    413: ("request_too_large", _FAR_TOO_LARGE),
    431: ("headers_too_large", "The request's headers are larger than {most} bytes together. Send less."),
    501: (
        "not_implemented",
        "The request has a transfer coding that is not taken. Send it chunked or with its Content-Length.",
    ),
}


class Head(HTTPRequestParser):  # type: ignore[misc] # waitress ships no types
    """waitress's reader, but an address that ``urllib`` cannot split is a 400 and no dropped connection."""

    def parse_header(self, header_plus: bytes) -> None:
        """Take the head's bytes."""
        try:
            super().parse_header(header_plus)
        except ValueError as error:
            raise ParsingError("Bad URI") from error


class JsonErrorTask(ErrorTask):  # type: ignore[misc] # waitress ships no types
    """Answers what waitress itself refuses in the shape of every other error, with a line in the log."""

    def execute(self) -> None:
        """Send the error object and close."""
        error = self.request.error
        code, message = _CODES.get(error.code, ("server_error", "The server had an error. Try again."))
        most = self.channel.adj.max_request_header_size
        kind = "server_error" if error.code == _SERVER_ERROR else "invalid_request_error"
        shown = {"message": message.format(most=most), "type": kind, "param": None, "code": code}
        body = json.dumps({"error": shown}).encode()
        request_id = ids.new("request")
        self.status = f"{error.code} {error.reason}"
        self.response_headers += [
            ("Content-Type", "application/json"),
            ("x-request-id", request_id),
            ("openai-processing-ms", "0"),  # nothing was done with it
            ("X-Content-Type-Options", "nosniff"),
        ]
        if error.code != _SERVER_ERROR:
            self.response_headers.append(("x-should-retry", "false"))
        metrics.HTTP_REQUESTS.labels("other", "unread", str(error.code)).inc()
        with logs.bound(request_id=request_id):
            _LOG.info("refused unread", extra={"status": error.code, "code": code})
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)
