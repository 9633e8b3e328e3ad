"""What comes back from the API, read with care: its error object, its page, or something that is not its own."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar
from urllib.parse import quote

import httpx

from gridline.client.errors import ClientError
from gridline.client.objects import Json, Page

Read = TypeVar("Read")

# Of an answer that is not JSON, no more than this goes into a message.
MESSAGE_CHARS_MAX = 200


def page_of(read: Callable[[Json], Read]) -> Callable[[Json], Page[Read]]:
    """Reads a list object with ``read`` for each entry."""
    return partial(Page.of, read=read)


def split(base_url: str) -> tuple[str, str | None]:
    """The server's root and the path of OpenAI's resources, from either kind of base URL; None where it names none."""
    url = base_url.rstrip("/")
    for path in ("/openai/v1", "/v1"):
        if url.endswith(path):
            return url.removesuffix(path), path
    return url, None


def segment(identifier: str) -> str:
    """An id as one segment of a path: it may come from a page's address, and must never climb out of it."""
    return quote(identifier, safe="").replace(".", "%2E") or "-"


def refusal(answer: httpx.Response) -> ClientError:
    """The error object of an answer, as wire.md's ``{"error": {message, type, param, code}}``."""
    try:
        error = answer.json()["error"]
        message, code = str(error["message"]), error.get("code")
    except (ValueError, KeyError, TypeError, AttributeError):
        return unreadable(answer)
    return ClientError(message, code=code, status=answer.status_code, request_id=_request_id(answer))


def unreadable(answer: httpx.Response) -> ClientError:
    """The error for an answer that is not the API's own."""
    message = f"The API answered {answer.status_code} with something that is not its own: {answer.text[:MESSAGE_CHARS_MAX]}"
    return ClientError(
        message.strip(), code="unreadable", status=answer.status_code, request_id=_request_id(answer)
    )


def _request_id(answer: httpx.Response) -> str | None:
    value: str | None = answer.headers.get("x-request-id")
    return value
