"""The typed client: one method a call, objects in and out, every failure a ClientError."""

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

import httpx

from gridline.client import answers
from gridline.client.access import AccessCalls
from gridline.client.answers import page_of, segment
from gridline.client.batch import Batch
from gridline.client.errors import ClientError
from gridline.client.objects import (
    Account,
    Event,
    FileInfo,
    Json,
    ModelInfo,
    Page,
    Platform,
    Receipt,
    Results,
)
from gridline.client.webhooks import Webhooks

Read = TypeVar("Read")

TIMEOUT_SECONDS = 10.0
CHUNK_BYTES = 1 << 18
UPLOAD_TIMEOUT_SECONDS = 120.0
"""An upload is answered once it is checked and stored."""


@dataclass(frozen=True)
class Download:
    """A file's content on its way: ``chunks`` can be read once, ``length`` is None when not announced."""

    length: int | None
    chunks: Iterator[bytes]


class Client(AccessCalls):
    """Calls the API at ``base_url`` (with or without OpenAI's path) with one account's token, or a user's session.

    Without either it can only sign up and in, and read what is public.

    Safe to share between threads. A call gives up after 10 seconds of silence (an upload after 120); nothing is retried.
    """

    def __init__(
        self, base_url: str, token: str = "", *, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._root, self._path = answers.split(base_url)
        self._http = httpx.Client(
            base_url=self._root,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=TIMEOUT_SECONDS,
            transport=transport,
            # Certificates are read for HTTPS only: that takes longer than a call.
            verify=self._root.startswith("https:"),
            # Only this address: no proxy or credentials that the environment may name.
            trust_env=False,
        )
        self.webhooks = Webhooks(self._send)

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

    @property
    def base_url(self) -> str:
        """What an OpenAI SDK is given as its base URL; asks the platform once, if this client was not told."""
        return self._root + self.openai_path

    @cached_property
    def openai_path(self) -> str:
        """Where OpenAI's resources are on that server."""
        return self._path or self.platform.base_path

    @cached_property
    def platform(self) -> Platform:
        """What the platform takes, asked once: it changes with its setting only. Needs no token."""
        return self._get("/gridline/v1/platform", Platform.from_json)

    def account(self) -> Account:
        """The token's account with its balance and limits."""
        return self._get("/gridline/v1/account", Account.from_json)

    def batches(self, *, after: str | None = None, limit: int = 20) -> Page[Batch]:
        """A page of batches, newest first, that follow the batch ``after``."""
        params = {"limit": str(limit)} | ({"after": after} if after else {})
        return self._get("/gridline/v1/batches", page_of(Batch.from_json), params)

    def batch(self, batch_id: str) -> Batch:
        """One batch."""
        return self._get(f"/gridline/v1/batches/{segment(batch_id)}", Batch.from_json)

    def create_batch(
        self,
        file_id: str,
        *,
        endpoint: str,
        window: str,
        metadata: dict[str, str] | None = None,
        key: str | None = None,
    ) -> Batch:
        """Make a batch of an uploaded file; under the same ``key`` (for 24 h) there is only one."""
        body: dict[str, Any] = {
            "input_file_id": file_id,
            "endpoint": endpoint,
            "completion_window": window,
        }
        if metadata:
            body["metadata"] = metadata
        headers = {"Idempotency-Key": key} if key else {}
        return self._send("POST", f"{self.openai_path}/batches", Batch.from_json, json=body, headers=headers)

    def cancel(self, batch_id: str) -> Batch:
        """Ask for a batch to be cancelled; lines that are done are delivered and charged."""
        return self._send("POST", f"{self.openai_path}/batches/{segment(batch_id)}/cancel", Batch.from_json)

    def estimate(self, file_id: str, *, endpoint: str, window: str) -> Json:
        """What a batch of the file would cost, at most and likely, or what is wrong with its lines."""
        body = {"input_file_id": file_id, "endpoint": endpoint, "completion_window": window}
        return self._send("POST", "/gridline/v1/estimates", dict, json=body)

    def events(self, batch_id: str) -> tuple[Event, ...]:
        """What happened to a batch, oldest first."""
        return self._get(f"/gridline/v1/batches/{segment(batch_id)}/events", page_of(Event.from_json)).data

    def receipt(self, batch_id: str) -> Receipt:
        """What a batch holds or was charged; not found when no credit was ever held for it."""
        return self._get(f"/gridline/v1/batches/{segment(batch_id)}/receipt", Receipt.from_json)

    def results(self, batch_id: str, *, after: str | None = None, limit: int = 1_000) -> Results:
        """About ``limit`` lines that a batch has done since the cursor, in the order in which they were done."""
        params = {"limit": str(limit)} | ({"after": after} if after else {})
        answer = self._answer("GET", f"/gridline/v1/batches/{segment(batch_id)}/results", params=params)
        try:
            lines = tuple(json.loads(line) for line in answer.content.splitlines())
            cursor, incomplete = (answer.headers[f"gridline-{one}"] for one in ("next-cursor", "incomplete"))
        except (ValueError, KeyError) as error:
            raise answers.unreadable(answer) from error
        return Results(lines, cursor, incomplete != "false")

    def files(self, *, after: str | None = None, limit: int = 20) -> Page[FileInfo]:
        """A page of files, newest first, that follow the file ``after``."""
        params = {"limit": str(limit), "order": "desc"} | ({"after": after} if after else {})
        return self._get(f"{self.openai_path}/files", page_of(FileInfo.from_json), params)

    def upload(self, name: str, content: BinaryIO) -> FileInfo:
        """Store an input file for batches, read from ``content`` while it is sent."""
        return self._send(
            "POST",
            f"{self.openai_path}/files",
            FileInfo.from_json,
            data={"purpose": "batch"},
            files={"file": (name, content, "application/jsonl")},
            timeout=UPLOAD_TIMEOUT_SECONDS,
        )

    def pass_on(self, form: Iterable[bytes], *, media_type: str, length: str | None) -> FileInfo:
        """Store an input file out of a multipart form that somebody else sends, passed on as it comes."""
        headers = {"Content-Type": media_type} | ({"Content-Length": length} if length else {})
        return self._send(
            "POST",
            f"{self.openai_path}/files",
            FileInfo.from_json,
            content=form,
            headers=headers,
            timeout=UPLOAD_TIMEOUT_SECONDS,
        )

    def delete_file(self, file_id: str) -> None:
        """Delete a file; one that a batch still needs is refused."""
        self._send("DELETE", f"{self.openai_path}/files/{segment(file_id)}", dict)

    def file(self, file_id: str) -> FileInfo:
        """One file's name, size and dates."""
        return self._get(f"{self.openai_path}/files/{segment(file_id)}", FileInfo.from_json)

    def models(self) -> tuple[ModelInfo, ...]:
        """The models that batches can use."""
        return self._get(f"{self.openai_path}/models", page_of(ModelInfo.from_json)).data

    def write(self, text: str, *, batch_id: str | None = None) -> Json:
        """Write to the operator, about a batch of the account or about none."""
        body = {"text": text} | ({"batch_id": batch_id} if batch_id else {})
        return self._send("POST", "/gridline/v1/messages", dict, json=body)

    def pricing(self) -> Json:
        """What things cost and the limits of a new account; needs no token."""
        return self._get("/gridline/v1/pricing", dict)

    def usage(self, days: dict[str, str]) -> tuple[Json, ...]:
        """What was delivered and charged by UTC day and model; ``days`` may hold ``from`` and ``to``."""
        return self._get("/gridline/v1/usage", page_of(dict), days).data

    def requests(self, query: dict[str, str]) -> Page[Json]:
        """A page of the request log; ``query`` may hold ``batch_id`` or ``day``, ``after`` and ``limit``."""
        return self._get("/gridline/v1/requests", page_of(dict), query)

    def statement(self, days: dict[str, str]) -> Json:
        """Opening and closing balance with every entry between; ``days`` may hold ``from`` and ``to``."""
        return self._get("/gridline/v1/statement", dict, days)

    def statement_sheet(self, days: dict[str, str]) -> AbstractContextManager[Download]:
        """The statement as CSV, streamed."""
        return self._stream("/gridline/v1/statement", days | {"format": "csv"})

    def download(self, file_id: str) -> AbstractContextManager[Download]:
        """A file's content, streamed: memory does not grow with the file.

        Raises:
            ClientError: also in the middle of ``chunks`` when the connection breaks: what was read is a part.
        """
        return self._stream(f"{self.openai_path}/files/{segment(file_id)}/content", {})

    @contextmanager
    def _stream(self, path: str, params: dict[str, str]) -> Generator[Download, None, None]:
        with self._failures(), self._http.stream("GET", path, params=params) as answer:
            if answer.is_error:
                answer.read()
                raise answers.refusal(answer)
            announced = answer.headers.get("content-length", "")
            yield Download(int(announced) if announced.isdigit() else None, answer.iter_bytes(CHUNK_BYTES))

    def _get(self, path: str, read: Callable[[Json], Read], params: dict[str, str] | None = None) -> Read:
        return self._send("GET", path, read, params=params)

    def _send(self, method: str, path: str, read: Callable[[Json], Read], **more: Any) -> Read:
        answer = self._answer(method, path, **more)
        try:
            return read(answer.json())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise answers.unreadable(answer) from error

    def _answer(self, method: str, path: str, **more: Any) -> httpx.Response:
        with self._failures():
            answer = self._http.request(method, path, **more)
        if answer.is_error:
            raise answers.refusal(answer)
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
