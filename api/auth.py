"""Who calls: the bearer token, its account and its scopes. No route is reached without passing here."""

from dataclasses import dataclass

from flask import Blueprint, Flask, g, request

from api import rates
from gridline.customers import tokens
from gridline.customers.memory import Bearer
from gridline.db.work import unit_of_work
from gridline.errors import NotAuthenticated, NotPermitted

_READING = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class Caller:
    """The token that a request came with."""

    account_id: str
    token_id: str
    scopes: frozenset[str]

    @property
    def actor(self) -> str:
        """How events and the audit name the caller."""
        return f"token:{self.token_id}"


def guard(blueprint: Blueprint) -> Blueprint:
    """Ask every request of the blueprint for a token with the scope that its method needs."""
    blueprint.before_request(_admit)
    return blueprint


def caller() -> Caller:
    """Who makes this request."""
    who: Caller = g.caller
    return who


def scope_of(app: Flask, endpoint: str, method: str) -> str | None:
    """The scope that a route asks a token for; None where it asks for no token."""
    guarded = _admit in app.before_request_funcs.get(endpoint.rpartition(".")[0], ())
    return _needed(method) if guarded else None


def _needed(method: str) -> str:
    return tokens.READ if method in _READING else tokens.WRITE


def _admit() -> None:
    text = _bearer(request.headers.getlist("Authorization"))
    bearer = tokens.remembered(text) or _recognised(text)
    g.caller = Caller(bearer.account_id, bearer.token_id, bearer.scopes)
    rates.admit_request(bearer.account_id, bearer.requests_per_minute_max)
    needed = _needed(request.method)
    if needed not in g.caller.scopes:
        raise NotPermitted(
            f"You have insufficient permissions for this operation. Missing scopes: {needed}. "
            "Use a token that has it, or ask the operator for one."
        )


def _recognised(text: str) -> Bearer:
    try:
        with unit_of_work() as work:
            return tokens.recognise(work, text)
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
