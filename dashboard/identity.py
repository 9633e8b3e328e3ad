"""Signing in with an identity provider: OpenID Connect's code flow in two routes of ours, with state, nonce and PKCE.

What ties the two together stays here in memory, under a cookie of the browser that began, for ten minutes and one use. The ID token
goes to the API, which alone says whether it is to be believed.
"""

import hmac
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from http import HTTPStatus
from threading import Lock
from urllib.parse import quote_plus, urlencode, urlsplit

from anyio import to_thread
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from dashboard import entrance
from gridline.client import Client, ClientError, SignedIn
from gridline.client.provider import Provider, read_json
from gridline.errors import SettingInvalid
from gridline.settings import settings

START, CALLBACK = "/oidc/start", "/oidc/callback"
COOKIE, COOKIE_PATH = "gridline_oidc", "/oidc"
SECONDS_MAX = 600
BEGUN_MAX = 10_000
RANDOM_BYTES = 32
SCOPES = "openid email"

PROBLEMS = {"email_taken": "email_has_user", "unknown_url": "identity_not_taken"}
"""Codes of the API that mean something else here than on the form for passwords."""

# A form may lead to our own pages only, redirects included (headers.py), and a provider may send the browser on to anywhere.
ON_THE_WAY = Markup("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Sign in</title>
<meta http-equiv="refresh" content="0;url={url}"></head>
<body><p><a href="{url}">Go on to {host} to sign in</a></p></body></html>
""")


@dataclass(frozen=True)
class Begun:
    """A sign-in that has gone to the provider, and what it must come back with."""

    target: str
    started: float
    state: str = field(default_factory=lambda: secrets.token_urlsafe(RANDOM_BYTES), repr=False)
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(RANDOM_BYTES), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(RANDOM_BYTES), repr=False)

    @property
    def challenge(self) -> str:
        """The verifier as the provider may see it before the code."""
        return urlsafe_b64encode(sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


@dataclass
class Begins:
    """All sign-ins of this process that are on their way. ``monotonic`` gives seconds that never go back."""

    monotonic: Callable[[], float] = time.monotonic
    _found: dict[str, Begun] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def begin(self, target: str) -> tuple[str, Begun]:
        """Another one, and the key for the browser's cookie. The oldest gives way when full."""
        key, begun = secrets.token_urlsafe(RANDOM_BYTES), Begun(target, self.monotonic())
        with self._lock:
            self._found[_hash(key)] = begun
            while len(self._found) > BEGUN_MAX:
                del self._found[next(iter(self._found))]
        return key, begun

    def take(self, key: str, state: str) -> Begun | None:
        """The sign-in of that cookie and state, once, if it is not too old. Another's state ends nothing."""
        with self._lock:
            begun = self._found.get(_hash(key))
            if begun is None or not hmac.compare_digest(begun.state.encode(), state.encode()):
                return None
            del self._found[_hash(key)]
        return begun if self.monotonic() - begun.started <= SECONDS_MAX else None


BEGINS = Begins()


def checked_host() -> str:
    """Where visitors may sign in, as they know it; "" where there is no identity provider.

    Raises:
        SettingInvalid: the settings name one and cannot be used.
    """
    issuer = settings().sign_in_provider
    if issuer and not settings().oidc_client_secret:
        raise SettingInvalid(
            "GRIDLINE_OIDC_ISSUER is set and GRIDLINE_OIDC_CLIENT_SECRET is not: the dashboard needs both."
        )
    return urlsplit(issuer).netloc


async def start(request: Request) -> Response:
    """Send the visitor to the identity provider, from a form of ours."""
    form = await entrance.form_of(request)
    if isinstance(form, Response):
        return form
    if not checked_host():
        return _nothing_here()
    target = entrance.local_path(form.get(entrance.NEXT, "/"))
    try:
        endpoint = await to_thread.run_sync(lambda: _provider().address("authorization_endpoint"))
    except ClientError as error:
        return entrance.back(target, entrance.told(error))
    key, begun = BEGINS.begin(target)
    asked = {
        "response_type": "code",
        "client_id": settings().oidc_client_id,
        "redirect_uri": redirect_uri(),
        "scope": SCOPES,
        "state": begun.state,
        "nonce": begun.nonce,
        "code_challenge": begun.challenge,
        "code_challenge_method": "S256",
    }
    url = f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"
    answer = HTMLResponse(
        ON_THE_WAY.format(url=url, host=urlsplit(endpoint).netloc), headers={"cache-control": "no-store"}
    )
    answer.set_cookie(
        COOKIE,
        key,
        max_age=SECONDS_MAX,
        path=COOKIE_PATH,
        secure=entrance.secure(),
        httponly=True,
        samesite="lax",
    )
    return answer


async def callback(request: Request) -> Response:
    """Take the visitor back from the identity provider, and start a session if the API believes it."""
    if not checked_host():
        return _nothing_here()
    query = request.query_params
    begun = BEGINS.take(request.cookies.get(COOKIE, ""), query.get("state", ""))
    if begun is None:
        return entrance.back("/", "identity_lost")
    answer = await _entered(request, begun)
    answer.delete_cookie(COOKIE, path=COOKIE_PATH, httponly=True, samesite="lax")
    return answer


async def _entered(request: Request, begun: Begun) -> Response:
    query = request.query_params
    code = query.get("code", "")
    # Where the provider says who it is (RFC 9207), it has to be the one that was gone to.
    if "error" in query or not code or query.get("iss", _provider().issuer) != _provider().issuer:
        cancelled = query.get("error") == "access_denied"
        return entrance.back(begun.target, "identity_cancelled" if cancelled else "identity_refused")
    address = entrance.address_of(request)
    try:
        signed = await to_thread.run_sync(lambda: _signed_in(code, begun, address))
        client = Client(settings().reachable_api_url, signed.secret)
        return await entrance.welcome(request, client, begun.target, signed.email)
    except ClientError as error:
        return entrance.back(begun.target, PROBLEMS.get(error.code or "") or entrance.told(error))


def _signed_in(code: str, begun: Begun, address: str | None) -> SignedIn:
    id_token = _exchanged(code, begun)
    with Client(settings().reachable_api_url) as nobody:
        return nobody.sign_in_with_identity(id_token, begun.nonce, address=address)


def _exchanged(code: str, begun: Begun) -> str:
    """The ID token that the provider gives for a code, to us alone.

    Raises:
        ClientError: it gives none.
    """
    provider, config = _provider(), settings()
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri(),
        "code_verifier": begun.verifier,
    }
    more: dict[str, object] = {}
    ways = provider.about().get("token_endpoint_auth_methods_supported") or ()
    if "client_secret_post" in ways and "client_secret_basic" not in ways:
        form |= {"client_id": config.oidc_client_id, "client_secret": config.oidc_client_secret}
    else:
        # As RFC 6749 has it: both are written as a form writes them before they are joined.
        more["auth"] = (quote_plus(config.oidc_client_id), quote_plus(config.oidc_client_secret))
    status, body = read_json("POST", provider.address("token_endpoint"), data=form, **more)
    id_token = body.get("id_token")
    if status != HTTPStatus.OK or not isinstance(id_token, str):
        raise ClientError(
            f"The identity provider answered {status} without an ID token.", code="identity_refused"
        )
    return id_token


def redirect_uri() -> str:
    """Where the provider sends visitors back to: what the operator tells it."""
    return settings().public_dashboard_url + CALLBACK


def _provider() -> Provider:
    return _provider_of(settings().sign_in_provider)


@lru_cache(maxsize=4)
def _provider_of(issuer: str) -> Provider:
    return Provider(issuer)


def _nothing_here() -> Response:
    return PlainTextResponse("There is no identity provider here.", HTTPStatus.NOT_FOUND)


def _hash(key: str) -> str:
    return sha256(key.encode()).hexdigest()
