"""The way in and out: our own routes that sign up, in and out, and set the cookie. The API's session is ended with it.

Streamlit guards none of these: each checks that the form was sent by a page of this dashboard.
"""

import re
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from dashboard.sessions import AGE_SECONDS_MAX, COOKIE, SESSIONS
from gridline.client import Client, ClientError
from gridline.settings import settings

FORM_BYTES_MAX = 8 * 1024
TOKEN_CHARS_MAX = 512
# What a sign-in that did not work adds to the address, for the page to explain.
PROBLEM = "sign_in"
NEXT = "next"
SIGN_UP_PATH = "/sign_up"


async def sign_in(request: Request) -> Response:
    """Check e-mail and password, or a token, against the API, start a session, go back to the page that was asked for."""
    form = await form_of(request)
    if isinstance(form, Response):
        return form
    target = local_path(form.get(NEXT, "/"))
    try:
        if "email" in form:
            return await _enter(request, form, target, new=False)
        return await _with_token(request, form.get("token", "").strip(), target)
    except ClientError as error:
        return back(target, told(error))


async def sign_up(request: Request) -> Response:
    """Open an account through the API and sign in to it."""
    form = await form_of(request)
    if isinstance(form, Response):
        return form
    target = local_path(form.get(NEXT, "/"))
    here = f"{SIGN_UP_PATH}?{NEXT}={quote(target, safe='')}"
    if form.get("password") != form.get("again"):
        return back(here, "passwords_differ")
    try:
        return await _enter(request, form, target, new=True)
    except ClientError as error:
        return back(here, told(error))


async def sign_out(request: Request) -> Response:
    """End the session here, at the API and in the browser."""
    if not same_origin(request):
        return forbidden()
    await _leave(request)
    answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")
    return answer


async def _enter(request: Request, form: dict[str, str], target: str, *, new: bool) -> Response:
    with Client(settings().reachable_api_url) as nobody:
        signing = nobody.sign_up if new else nobody.sign_in
        signed = await to_thread.run_sync(
            lambda: signing(form.get("email", ""), form.get("password", ""), address=address_of(request))
        )
    return await welcome(request, Client(settings().reachable_api_url, signed.secret), target, signed.email)


async def _with_token(request: Request, token: str, target: str) -> Response:
    if not re.fullmatch(rf"[\x21-\x7e]{{1,{TOKEN_CHARS_MAX}}}", token):
        return back(target, "invalid_api_key")
    return await welcome(request, Client(settings().reachable_api_url, token), target)


async def welcome(request: Request, client: Client, target: str, email: str = "") -> Response:
    """Start the session of a client that the API lets in, and end the one that the browser had."""
    try:
        account = await to_thread.run_sync(client.account)
        # Asked now, so that no page has to wait for it or fail by it.
        await to_thread.run_sync(lambda: client.platform)
    except ClientError:
        client.close()
        raise
    await _leave(request)
    answer = RedirectResponse(target, HTTPStatus.SEE_OTHER)
    answer.set_cookie(
        COOKIE,
        SESSIONS.start(client, account, email=email),
        max_age=AGE_SECONDS_MAX,
        path="/",
        secure=secure(),
        httponly=True,
        samesite="lax",
    )
    return answer


async def _leave(request: Request) -> None:
    key = request.cookies.get(COOKIE, "")
    session = SESSIONS.find(key)
    if session is not None and session.email:
        # Where it has ended already, or the API is away, it ends by itself: here nobody has its secret any more.
        with suppress(ClientError):
            await to_thread.run_sync(session.client.sign_out)
    SESSIONS.end(key)


def told(error: ClientError) -> str:
    """What the page is to explain; a token that is refused says so also where the API's code is another."""
    if error.token_refused and error.code not in ("invalid_credentials", "invalid_id_token"):
        return "invalid_api_key"
    return error.code or "unreadable"


def address_of(request: Request) -> str | None:
    """Where the visitor is: what a proxy that is trusted says last, else who is connected."""
    host = request.client.host if request.client else None
    said = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    return said if said and host == settings().trusted_proxy else host


def secure() -> bool:
    """Whether browsers are to send cookies over https only."""
    return settings().public_dashboard_url.startswith("https://")


def local_path(text: str) -> str:
    """The address to go on to if it is one of ours, else the first page."""
    parts = urlsplit(text)
    ours = text.startswith("/") and not text.startswith("//") and not parts.scheme and not parts.netloc
    return text if ours and re.fullmatch(r"[\x21-\x5b\x5d-\x7e]+", text) else "/"


def same_origin(request: Request) -> bool:
    """Whether the form was sent by a page of this dashboard; browsers always name the Origin of a POST."""
    origin = urlsplit(request.headers.get("origin", ""))
    public = urlsplit(settings().public_dashboard_url)
    sent_by = (origin.scheme, origin.netloc)
    return sent_by in {(public.scheme, public.netloc), (request.url.scheme, request.headers.get("host", ""))}


def forbidden() -> Response:
    """To a form that another site sent."""
    return PlainTextResponse("Send this from the dashboard's own pages.", HTTPStatus.FORBIDDEN)


def back(target: str, problem: str) -> Response:
    """To the page that was asked for, which shows the sign-in form with what did not work."""
    mark = "&" if "?" in target else "?"
    return RedirectResponse(f"{target}{mark}{urlencode({PROBLEM: problem})}", HTTPStatus.SEE_OTHER)


async def form_of(request: Request) -> dict[str, str] | Response:
    """The fields of a form of ours, or the refusal of one that is not."""
    if not same_origin(request):
        return forbidden()
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES_MAX:
            return PlainTextResponse("The form is too large.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: values[0] for name, values in fields.items()}
