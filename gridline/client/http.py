"""The typed client: one method a call, objects in and out, every failure a ClientError."""

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

import httpx

from gridline.client.batch import Batch
from gridline.client.errors import ClientError
from gridline.client.objects import Account, Event, FileInfo, Json, ModelInfo, Page, Receipt, Results

Read = TypeVar("Read")

TIMEOUT_SECONDS = 10.0
CHUNK_BYTES = 1 << 18
# Of an answer that is not JSON, no more than this goes into a message.
MESSAGE_CHARS_MAX = 200


@dataclass(frozen=True)
class Download:
    """A file's content on its way: ``chunks`` can be read once, ``length`` is None when not announced."""

    length: int | None
    chunks: Iterator[bytes]


class Client:
    """Calls the API at ``base_url`` (with or without its ``/openai/v1``) with one account's token.

    Safe to share between threads. A call gives up after 10 seconds of silence; nothing is retried.
    """

    def __init__(self, base_url: str, token: str, *, transport: httpx.BaseTransport | None = None) -> None:
        root, self._openai = _split(base_url)
        self.base_url = root + self._openai
        self._http = httpx.Client(
            base_url=root,
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_SECONDS,
            transport=transport,
            # Certificates are read for HTTPS only: that takes longer than a call.
            verify=root.startswith("https:"),
            # Only this address: no proxy or credentials that the environment may name.
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client cannot be used any more."""
        self._http.close()

    def account(self) -> Account:
        """The token's account with its balance and limits."""
        return self._get("/gridline/v1/account", Account.from_json)

    def batches(self, *, after: str | None = None, limit: int = 20) -> Page[Batch]:
        """A page of batches, newest first, that follow the batch ``after``."""
        params = {"limit": str(limit)} | ({"after": after} if after else {})
        return self._get(f"{self._openai}/batches", _page_of(Batch.from_json), params)

    def batch(self, batch_id: str) -> Batch:
        """One batch."""
        return self._get(f"{self._openai}/batches/{_segment(batch_id)}", Batch.from_json)

    def events(self, batch_id: str) -> tuple[Event, ...]:
        """What happened to a batch, oldest first."""
        return self._get(f"/gridline/v1/batches/{_segment(batch_id)}/events", _page_of(Event.from_json)).data

    def receipt(self, batch_id: str) -> Receipt:
        """What a batch holds or was charged; not found when no credit was ever held for it."""
        return self._get(f"/gridline/v1/batches/{_segment(batch_id)}/receipt", Receipt.from_json)

    def results(self, batch_id: str, *, after: str | None = None, limit: int = 1_000) -> Results:
        """About ``limit`` lines that a batch has done since the cursor, in the order in which they were done."""
        params = {"limit": str(limit)} | ({"after": after} if after else {})
        answer = self._answer(f"/gridline/v1/batches/{_segment(batch_id)}/results", params)
        try:
            lines = tuple(json.loads(line) for line in answer.content.splitlines())
            cursor, incomplete = (answer.headers[f"gridline-{one}"] for one in ("next-cursor", "incomplete"))
        except (ValueError, KeyError) as error:
            raise _unreadable(answer) from error
        return Results(lines, cursor, incomplete != "false")

    def file(self, file_id: str) -> FileInfo:
        """One file's name, size and dates."""
        return self._get(f"{self._openai}/files/{_segment(file_id)}", FileInfo.from_json)

    def models(self) -> tuple[ModelInfo, ...]:
        """The models that batches can use."""
        return self._get(f"{self._openai}/models", _page_of(ModelInfo.from_json)).data

    @contextmanager
    def download(self, file_id: str) -> Generator[Download, None, None]:
        """A file's content, streamed: memory does not grow with the file.

        Raises:
            ClientError: also in the middle of ``chunks`` when the connection breaks: what was read is a part.
        """
        with (
            self._failures(),
            self._http.stream("GET", f"{self._openai}/files/{_segment(file_id)}/content") as answer,
        ):
            if answer.is_error:
                answer.read()
                raise _refusal(answer)
            announced = answer.headers.get("content-length", "")
            yield Download(int(announced) if announced.isdigit() else None, answer.iter_bytes(CHUNK_BYTES))

    def _get(self, path: str, read: Callable[[Json], Read], params: dict[str, str] | None = None) -> Read:
        answer = self._answer(path, params)
        try:
            return read(answer.json())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(answer) from error

    def _answer(self, path: str, params: dict[str, str] | None) -> httpx.Response:
        with self._failures():
            answer = self._http.get(path, params=params)
        if answer.is_error:
            raise _refusal(answer)
        return answer

    @contextmanager
    def _failures(self) -> Generator[None, None, None]:
        try:
            yield
        except httpx.TimeoutException as error:
            message = (
                f"The API at {self._http.base_url} gave no answer for {TIMEOUT_SECONDS:g} seconds. Try again."
            )
            raise ClientError(message, code="timeout") from error
        except httpx.HTTPError as error:
            message = (
                f"The API at {self._http.base_url} cannot be reached. Check that it runs, then try again."
            )
            raise ClientError(message, code="unreachable") from error
        except RuntimeError as error:
            if not self._http.is_closed:
                raise
            raise ClientError("This client was closed.", code="closed") from error


def _page_of(read: Callable[[Json], Read]) -> Callable[[Json], Page[Read]]:
    return partial(Page.of, read=read)


def _split(base_url: str) -> tuple[str, str]:
    """The server's root and the path of OpenAI's resources, from either kind of base URL."""
    url = base_url.rstrip("/")
    for path in ("/openai/v1", "/v1"):
        if url.endswith(path):
            return url.removesuffix(path), path
    return url, "/openai/v1"


def _segment(identifier: str) -> str:
    # An id comes from a page's address: it must stay one segment of the path, never climb out of it.
    return quote(identifier, safe="").replace(".", "%2E") or "-"


def _refusal(answer: httpx.Response) -> ClientError:
    """The error object of an answer, as wire.md's ``{"error": {message, type, param, code}}``."""
    try:
        error = answer.json()["error"]
        message, code = str(error["message"]), error.get("code")
    except (ValueError, KeyError, TypeError, AttributeError):
        return _unreadable(answer)
    return ClientError(message, code=code, status=answer.status_code, request_id=_request_id(answer))


def _unreadable(answer: httpx.Response) -> ClientError:
    message = f"The API answered {answer.status_code} with something that is not its own: {answer.text[:MESSAGE_CHARS_MAX]}"
    return ClientError(
        message.strip(), code="unreadable", status=answer.status_code, request_id=_request_id(answer)
    )


def _request_id(answer: httpx.Response) -> str | None:
    value: str | None = answer.headers.get("x-request-id")
    return value
