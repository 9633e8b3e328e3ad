"""The routes beside the pages: the way in and out, and downloads that stream through from the API.

Streamlit guards none of these: a download looks for its session itself.
"""

import re
from collections.abc import AsyncIterator
from contextlib import ExitStack
from http import HTTPStatus
from urllib.parse import urlencode

from anyio import to_thread
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from dashboard import entrance, identity
from dashboard.months import days
from dashboard.sessions import COOKIE, SESSIONS
from gridline.client import Client, ClientError, Download

KINDS = ("output", "errors")


async def download(request: Request) -> Response:
    """A batch's output or error file as an attachment, never held in memory."""
    batch_id, kind = request.path_params["batch_id"], request.path_params["kind"]
    session = SESSIONS.find(request.cookies.get(COOKIE, ""))
    if session is None:
        return RedirectResponse(f"/batch?{urlencode({'id': batch_id})}", HTTPStatus.SEE_OTHER)
    stack = ExitStack()
    try:
        got = await to_thread.run_sync(_open, stack, session.client, batch_id, kind)
    except ClientError as error:
        stack.close()
        return unavailable(error)
    name = re.sub(r"[^0-9A-Za-z_-]", "", batch_id) + f"_{kind}.jsonl"
    return attachment(got, stack, name, "application/jsonl")


async def statement(request: Request) -> Response:
    """A month's statement as CSV, streamed from the API."""
    month = request.path_params["month"]
    session = SESSIONS.find(request.cookies.get(COOKIE, ""))
    if session is None:
        return RedirectResponse("/billing", HTTPStatus.SEE_OTHER)
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month):
        return PlainTextResponse("A month is written as 2026-01.", HTTPStatus.NOT_FOUND)
    stack = ExitStack()
    sheet = session.client.statement_sheet(days(month))
    try:
        got = await to_thread.run_sync(stack.enter_context, sheet)
    except ClientError as error:
        stack.close()
        return unavailable(error)
    return attachment(got, stack, f"gridline-statement-{month}.csv", "text/csv")


def unavailable(error: ClientError) -> Response:
    """What the API said instead of a file."""
    status = error.status if error.not_found else HTTPStatus.BAD_GATEWAY
    return PlainTextResponse(
        f"{error.message}\nRequest id: {error.request_id}", status or HTTPStatus.BAD_GATEWAY
    )


def attachment(got: Download, stack: ExitStack, name: str, media_type: str) -> Response:
    """Pass a file on as it comes."""
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "private, no-store",
        # Said outright so that the server does not compress it and lose its length.
        "content-encoding": "identity",
    }
    if got.length is not None:
        headers["content-length"] = str(got.length)
    return StreamingResponse(_body(got, stack), media_type=media_type, headers=headers)


def _open(stack: ExitStack, client: Client, batch_id: str, kind: str) -> Download:
    """Look the file up as the session's account, and start to read it."""
    batch = client.batch(batch_id)
    file_id = batch.output_file_id if kind == "output" else batch.error_file_id
    if kind not in KINDS or file_id is None:
        raise ClientError(f"This batch has no {kind} file.", code="not_found", status=HTTPStatus.NOT_FOUND)
    return stack.enter_context(client.download(file_id))


async def _body(got: Download, stack: ExitStack) -> AsyncIterator[bytes]:
    # Closed also when the browser goes away. A break in the middle raises: the browser sees a failed
    # download, not a short file.
    try:
        async for chunk in iterate_in_threadpool(got.chunks):
            yield chunk
    finally:
        stack.close()


ROUTES = [
    Route("/session/in", entrance.sign_in, methods=["POST"]),
    Route("/session/up", entrance.sign_up, methods=["POST"]),
    Route("/session/out", entrance.sign_out, methods=["POST"]),
    Route(identity.START, identity.start, methods=["POST"]),
    Route(identity.CALLBACK, identity.callback, methods=["GET"]),
    Route("/download/statement/{month}", statement, methods=["GET"]),
    Route("/download/{batch_id}/{kind}", download, methods=["GET"]),
]
