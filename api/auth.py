"""Who calls: the bearer (a token, or the session of a user), its account and its scopes. No route is reached without passing here."""

from dataclasses import dataclass
from typing import Protocol

from flask import Blueprint, Flask, g, request

from api import rates
from gridline.customers import sessions, tokens
from gridline.customers.memory import Bearer
from gridline.db.work import Work, unit_of_work
from gridline.errors import NotAuthenticated, NotPermitted

SESSION = "session"
"""What a route asks for that no token opens."""

_READING = frozenset({"GET", "HEAD"})


class Kind(Protocol):
    """A kind of bearer: the module that knows it."""

    def remembered(self, text: str) -> Bearer | None:
        """The bearer of a text that opened something a moment ago."""

    def recognise(self, work: Work, text: str) -> Bearer:
        """The bearer of a text, as the database says now."""


@dataclass(frozen=True)
class Caller:
    """The token or session that a request came with; ``token_id`` is the session's id where there is a user."""

    account_id: str
    token_id: str
    scopes: frozenset[str]
    user_id: str | None = None

    @property
    def actor(self) -> str:
        """How events and the audit name the caller."""
        return f"user:{self.user_id}" if self.user_id else f"token:{self.token_id}"


def guard(blueprint: Blueprint) -> Blueprint:
    """Ask every request of the blueprint for a token with the scope that its method needs, or for a session."""
    blueprint.before_request(_admit)
    return blueprint


def guard_for_users(blueprint: Blueprint) -> Blueprint:
    """Ask every request of the blueprint for a session: what a token must not do, whatever its scopes."""
    blueprint.before_request(_admit_user)
    return blueprint


def caller() -> Caller:
    """Who makes this request."""
    who: Caller = g.caller
    return who


def scope_of(app: Flask, endpoint: str, method: str) -> str | None:
    """The scope that a route asks a token for; SESSION where only a session will do, None where it asks for nothing."""
    asked = app.before_request_funcs.get(endpoint.rpartition(".")[0], ())
    if _admit_user in asked:
        return SESSION
    return _needed(method) if _admit in asked else None


def _needed(method: str) -> str:
    return tokens.READ if method in _READING else tokens.WRITE


def _admit() -> None:
    _identify()
    needed = _needed(request.method)
    if needed not in g.caller.scopes:
        raise NotPermitted(
            f"You have insufficient permissions for this operation. Missing scopes: {needed}. "
            "Use a token that has it, or ask the operator for one."
        )


def _admit_user() -> None:
    _identify()
    if g.caller.user_id is None:
        raise NotPermitted(
            "You have insufficient permissions for this operation: it needs a signed-in session, and this is an API "
            "token, which can neither make nor end tokens. Sign in to the dashboard, run 'gridline setup --apply', or "
            "send the secret of a session from POST /gridline/v1/sessions."
        )


def _identify() -> None:
    text = _bearer(request.headers.getlist("Authorization"))
    kind: Kind = sessions if text.startswith(sessions.PREFIX) else tokens
    bearer = kind.remembered(text) or _recognised(kind, text)
    g.caller = Caller(bearer.account_id, bearer.token_id, bearer.scopes, bearer.user_id)
    rates.admit_request(bearer.account_id, bearer.requests_per_minute_max)


def _recognised(kind: Kind, text: str) -> Bearer:
    try:
        with unit_of_work() as work:
            return kind.recognise(work, text)
    except NotAuthenticated:
        rates.count_wrong_token()
        raise


def _bearer(headers: list[str]) -> str:
    """The token's text; only this header is read, so a token never belongs into an address."""
    scheme, _, text = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not text:
        raise NotAuthenticated(
            "You didn't provide an API key. Send it in the Authorization header with Bearer auth: "
            "'Authorization: Bearer YOUR_KEY'."
        )
    return text
