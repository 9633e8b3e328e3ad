"""API tokens: made, listed and revoked by a signed-in session, never by a token."""

from collections.abc import Mapping
from typing import Any

from flask import Blueprint

from api import auth, bodies, queries
from api.reference.operations import operation
from gridline import ids, limits
from gridline.customers import tokens
from gridline.db.work import reading, unit_of_work
from gridline.errors import InvalidRequest, NotFound
from gridline.fields import array_of, bounded, keys_of, one_of, text_of

KEYS = ("name", "scopes")

blueprint = queries.strict(auth.guard_for_users(Blueprint("tokens", __name__)))


@blueprint.post("/tokens")
@operation(
    "Access",
    "createToken",
    "Make a token",
    body="TokenCreate",
    returns="TokenCreated",
    refuses=("string_above_max_length", "empty_array", "limit_exceeded"),
)
def create_token() -> dict[str, Any]:
    """Make a token of the account. Its text is in this answer and in no other."""
    given = keys_of(bodies.json_body(), known=KEYS, required=("name",))
    name = bounded(text_of(given["name"], "name").strip(), limits.TOKEN_NAME_CHARS_MAX, "name")
    if not name.isprintable() or not name:
        raise InvalidRequest(
            f"Invalid 'name': 1 to {limits.TOKEN_NAME_CHARS_MAX} printable characters say what the token is for.",
            code="invalid_value",
            param="name",
        )
    scopes = _scopes(given)
    who = auth.caller()
    with unit_of_work() as work:
        token, secret = tokens.issued_to(work, who.account_id, name, scopes=scopes, actor=who.actor)
        return tokens.token_object(token) | {"secret": secret}


@blueprint.get("/tokens")
@operation("Access", "listTokens", "List tokens", returns="TokenList")
def list_tokens() -> dict[str, Any]:
    """The account's tokens that open something now, newest first, also those that the operator made."""
    with reading() as work:
        data = [tokens.token_object(one) for one in tokens.listed(work, auth.caller().account_id)]
    return {"object": "list", "data": data, "has_more": False}


@blueprint.delete("/tokens/<token_id>")
@operation("Access", "revokeToken", "Revoke a token", returns="TokenRevoked", refuses=("not_found",))
def revoke_token(token_id: str) -> dict[str, Any]:
    """End a token for good: within 5 seconds nothing opens for it any more. Twice is as good as once."""
    if not ids.is_id("token", token_id):
        raise NotFound(f"There is no token {token_id!r}.")
    who = auth.caller()
    with unit_of_work() as work:
        tokens.revoke(work, who.account_id, token_id, actor=who.actor)
    return {"id": token_id, "object": "token", "deleted": True}


def _scopes(given: Mapping[str, Any]) -> tuple[str, ...]:
    if given.get("scopes") is None:
        return tokens.SCOPES
    wanted = tuple(
        one_of(one, tokens.SCOPES, f"scopes[{place}]")
        for place, one in enumerate(array_of(given["scopes"], "scopes")[: len(tokens.SCOPES) + 1])
    )
    if not wanted:
        raise InvalidRequest(
            f"Invalid 'scopes': a token needs at least one of {', '.join(tokens.SCOPES)}. "
            "Name one, or leave 'scopes' out for both.",
            code="empty_array",
            param="scopes",
        )
    return wanted
