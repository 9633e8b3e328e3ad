"""Files between the browser and the API, streamed through and never held: an upload in, and what a batch offers out.

As with the other routes Streamlit guards none of these: the POST checks its Origin, each looks its session up.
"""

import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack, closing
from http import HTTPStatus
from typing import cast
from urllib.parse import urlencode

from anyio import CapacityLimiter, from_thread, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dashboard.entrance import forbidden, same_origin
from dashboard.routes import attachment, unavailable
from dashboard.sessions import COOKIE, SESSIONS, Session
from gridline.client import Client, ClientError, Download, FileInfo, retrying

UPLOADS_AT_ONCE = 8
"""Each holds a thread for as long as its browser sends."""
REST_BYTES_MAX = 250_000_000
"""What is still read of a refused upload: a browser shows the answer only once it has sent everything."""
_uploads = CapacityLimiter(UPLOADS_AT_ONCE)
Opens = Callable[[ExitStack, Client], Download]


async def upload(request: Request) -> Response:
    """Pass the form's file on to the API as it comes, then go on to a new batch with it."""
    if not same_origin(request):
        return forbidden()
    session = _session(request)
    if session is None:
        return RedirectResponse("/new_batch", HTTPStatus.SEE_OTHER)
    chunks = request.stream()
    try:
        file = await to_thread.run_sync(_pass_on, session.client, request, chunks, limiter=_uploads)
    except ClientError as error:
        session.told = error
        await _drain(chunks)
        return RedirectResponse("/new_batch", HTTPStatus.SEE_OTHER)
    return RedirectResponse(f"/new_batch?{urlencode({'file': file.id})}", HTTPStatus.SEE_OTHER)


def _pass_on(client: Client, request: Request, chunks: AsyncIterator[bytes]) -> FileInfo:
    return client.pass_on(
        _arriving(chunks),
        media_type=request.headers.get("content-type", ""),
        length=request.headers.get("content-length"),
    )


def _arriving(chunks: AsyncIterator[bytes]) -> Iterator[bytes]:
    """The chunks of the browser, for the thread that sends them on."""
    while (chunk := from_thread.run(_next, chunks)) is not None:
        yield chunk


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    left = REST_BYTES_MAX
    try:
        async for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                return
    except (ClientDisconnect, RuntimeError):
        # It went away, or the stream had ended in the thread.
        return


async def file(request: Request) -> Response:
    """Any file of the account."""
    file_id = request.path_params["file_id"]
    return await _download(
        request,
        lambda stack, client: stack.enter_context(client.download(file_id)),
        f"{_safe(file_id)}.jsonl",
    )


async def partial_results(request: Request) -> Response:
    """What a batch has done so far, in the order in which it was done."""
    batch_id = request.path_params["batch_id"]
    return await _download(
        request, lambda stack, client: _so_far(stack, client, batch_id), f"{_safe(batch_id)}_partial.jsonl"
    )


async def retry(request: Request) -> Response:
    """The requests of a batch's failed lines as a new input file."""
    batch_id = request.path_params["batch_id"]
    return await _download(
        request, lambda stack, client: _again(stack, client, batch_id), f"{_safe(batch_id)}_retry.jsonl"
    )


async def _download(request: Request, opens: Opens, name: str) -> Response:
    session = _session(request)
    if session is None:
        return RedirectResponse("/", HTTPStatus.SEE_OTHER)
    stack = ExitStack()
    try:
        got = await to_thread.run_sync(opens, stack, session.client)
    except ClientError as error:
        stack.close()
        return unavailable(error)
    return attachment(got, stack, name, "application/jsonl")


def _so_far(stack: ExitStack, client: Client, batch_id: str) -> Download:
    first = client.results(batch_id)

    def lines() -> Iterator[bytes]:
        page = first
        while page.lines:
            text = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in page.lines)
            yield "".join(f"{one}\n" for one in text).encode()
            page = client.results(batch_id, after=page.next_cursor)

    return _made(stack, lines())


def _again(stack: ExitStack, client: Client, batch_id: str) -> Download:
    batch = client.batch(batch_id)
    wanted = retrying.failed_ids(client, batch)
    if not wanted:
        raise ClientError("This batch names no failed line.", code="not_found", status=HTTPStatus.NOT_FOUND)
    return _made(stack, retrying.failed_lines(client, batch, wanted))


def _made(stack: ExitStack, lines: Iterator[bytes]) -> Download:
    """Lines that are made while they are sent; a browser that goes away ends their making."""
    return Download(None, stack.enter_context(closing(cast("Generator[bytes, None, None]", lines))))


def _session(request: Request) -> Session | None:
    return SESSIONS.find(request.cookies.get(COOKIE, ""))


def _safe(identifier: str) -> str:
    """An id as part of a file's name."""
    return "".join(one for one in identifier if one.isalnum() or one in "-_")


ROUTES = [
    Route("/files/in", upload, methods=["POST"]),
    Route("/download/file/{file_id}", file, methods=["GET"]),
    Route("/download/{batch_id}/partial", partial_results, methods=["GET"]),
    Route("/download/{batch_id}/retry", retry, methods=["GET"]),
]
