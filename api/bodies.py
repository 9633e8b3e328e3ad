"""Request bodies: strict JSON within its cap, and bodies that must come as they are."""

import jiter
from flask import request
from werkzeug.exceptions import UnsupportedMediaType

from gridline import limits
from gridline.errors import InvalidRequest, TooLarge


def refuse_encoded() -> None:
    """Refuse a compressed body: it is never inflated.

    Raises:
        UnsupportedMediaType: a Content-Encoding other than identity.
    """
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType


def json_body() -> object:
    """The body as JSON: no NaN, no duplicate keys, bounded depth and size.

    Raises:
        UnsupportedMediaType: not sent as ``application/json``.
        TooLarge: over the cap.
        InvalidRequest: not JSON.
    """
    refuse_encoded()
    if request.mimetype != "application/json":
        raise UnsupportedMediaType
    data = request.stream.read(limits.JSON_BODY_BYTES_MAX + 1)
    if len(data) > limits.JSON_BODY_BYTES_MAX:
        raise TooLarge(
            f"The body is larger than {limits.JSON_BODY_BYTES_MAX} bytes, the most that a JSON body may have.",
            code="request_too_large",
            limit={"name": "json_body_bytes", "limit": limits.JSON_BODY_BYTES_MAX, "unit": "bytes"},
        )
    try:
        return jiter.from_json(data, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise InvalidRequest(
            f"We could not parse the JSON body of your request: {error}.", code="invalid_json"
        ) from error
