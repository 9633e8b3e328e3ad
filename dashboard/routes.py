"""The routes beside the pages: sign in, sign out, and downloads that stream through from the API.

Streamlit guards none of these: the two POSTs check their Origin, the download its session.
"""

import re
from collections.abc import AsyncIterator
from contextlib import ExitStack
from http import HTTPStatus
from urllib.parse import parse_qs, urlencode, urlsplit

from anyio import to_thread
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from dashboard.sessions import AGE_SECONDS_MAX, COOKIE, SESSIONS
from gridline.client import Account, Client, ClientError, Download
from gridline.settings import settings

FORM_BYTES_MAX = 8 * 1024
TOKEN_CHARS_MAX = 512
# What a sign-in that did not work adds to the address, for the page to explain.
PROBLEM = "sign_in"
KINDS = ("output", "errors")


async def sign_in(request: Request) -> Response:
    """Check the token against the API, start a session, go back to the page that was asked for."""
    if not _same_origin(request):
        return _forbidden()
    form = await _form(request)
    if form is None:
        return PlainTextResponse("The form is too large.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    target = local_path(form.get("next", "/"))
    token = form.get("token", "").strip()
    if not re.fullmatch(rf"[\x21-\x7e]{{1,{TOKEN_CHARS_MAX}}}", token):
        return _back(target, "invalid_api_key")
    client = Client(settings().public_api_url, token)
    try:
        account: Account = await to_thread.run_sync(client.account)
    except ClientError as error:
        client.close()
        return _back(target, "invalid_api_key" if error.token_refused else error.code or "unreadable")
    SESSIONS.end(request.cookies.get(COOKIE, ""))
    answer = RedirectResponse(target, HTTPStatus.SEE_OTHER)
    answer.set_cookie(
        COOKIE,
        SESSIONS.start(client, account),
        max_age=AGE_SECONDS_MAX,
        path="/",
        secure=settings().public_dashboard_url.startswith("https://"),
        httponly=True,
        samesite="lax",
    )
    return answer


async def sign_out(request: Request) -> Response:
    """End the session here and in the browser."""
    if not _same_origin(request):
        return _forbidden()
    SESSIONS.end(request.cookies.get(COOKIE, ""))
    answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")
    return answer


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
        status = error.status if error.not_found else HTTPStatus.BAD_GATEWAY
        return PlainTextResponse(
            f"{error.message}\nRequest id: {error.request_id}", status or HTTPStatus.BAD_GATEWAY
        )
    name = re.sub(r"[^0-9A-Za-z_-]", "", batch_id) + f"_{kind}.jsonl"
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "private, no-store",
        # Said outright so that the server does not compress it and lose its length.
        "content-encoding": "identity",
    }
    if got.length is not None:
        headers["content-length"] = str(got.length)
    return StreamingResponse(_body(got, stack), media_type="application/jsonl", headers=headers)


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


def local_path(text: str) -> str:
    """The address to go on to if it is one of ours, else the first page."""
    parts = urlsplit(text)
    ours = text.startswith("/") and not text.startswith("//") and not parts.scheme and not parts.netloc
    return text if ours and re.fullmatch(r"[\x21-\x5b\x5d-\x7e]+", text) else "/"


def _same_origin(request: Request) -> bool:
    """Whether the form was sent by a page of this dashboard; browsers always name the Origin of a POST."""
    origin = urlsplit(request.headers.get("origin", ""))
    public = urlsplit(settings().public_dashboard_url)
    sent_by = (origin.scheme, origin.netloc)
    return sent_by in {(public.scheme, public.netloc), (request.url.scheme, request.headers.get("host", ""))}


def _forbidden() -> Response:
    return PlainTextResponse("Sign in and out from the dashboard's own pages.", HTTPStatus.FORBIDDEN)


def _back(target: str, problem: str) -> Response:
    mark = "&" if "?" in target else "?"
    return RedirectResponse(f"{target}{mark}{urlencode({PROBLEM: problem})}", HTTPStatus.SEE_OTHER)


async def _form(request: Request) -> dict[str, str] | None:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES_MAX:
            return None
    fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: values[0] for name, values in fields.items()}


ROUTES = [
    Route("/session/in", sign_in, methods=["POST"]),
    Route("/session/out", sign_out, methods=["POST"]),
    Route("/download/{batch_id}/{kind}", download, methods=["GET"]),
]
