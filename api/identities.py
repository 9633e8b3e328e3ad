"""Signing in with an OpenID Connect provider: an ID token of it starts a session. Served only where one is configured."""

from dataclasses import dataclass
from typing import Any

from flask import Blueprint, Flask, current_app

from api import bodies, queries, rates, sessions
from api.reference.operations import operation
from gridline import limits
from gridline.client.errors import ClientError
from gridline.client.provider import Provider
from gridline.clock import unix
from gridline.customers import id_tokens, identities
from gridline.customers.id_tokens import Expected, Identity
from gridline.db.work import reading, unit_of_work
from gridline.errors import Unavailable
from gridline.fields import bounded, keys_of, text_of
from gridline.settings import Settings

KEYS = ("id_token", "nonce")
TRUSTED = "IDENTITY_PROVIDER"

entrance = queries.strict(Blueprint("identities", __name__))


@dataclass(frozen=True)
class Trusted:
    """The provider that this platform believes, and what it calls this platform."""

    provider: Provider
    client_id: str


def install(app: Flask, config: Settings, prefix: str) -> None:
    """Serve the call if the settings name a provider.

    Raises:
        SettingInvalid: they name one that cannot be used.
    """
    issuer = config.sign_in_provider
    app.config[TRUSTED] = Trusted(Provider(issuer), config.oidc_client_id) if issuer else None
    if issuer:
        app.register_blueprint(entrance, url_prefix=prefix)


def offered(app: Flask) -> bool:
    """Whether customers may sign in with an identity provider here."""
    return app.config[TRUSTED] is not None


@entrance.post("/sessions/identity")
@operation(
    "Access",
    "signInWithIdentity",
    "Sign in with an identity provider",
    body="IdentityToken",
    returns="SessionStarted",
    refuses=(
        "string_above_max_length",
        "invalid_id_token",
        "email_not_verified",
        "sign_up_closed",
        "email_taken",
        "rate_limit_exceeded",
        "service_unavailable",
    ),
)
def sign_in() -> dict[str, Any]:
    """Start a session with an ID token of the platform's OpenID Connect provider; somebody new gets an account by it.

    The same token can be sent again while it is young, so a lost answer costs nothing.
    """
    given = keys_of(bodies.json_body(), known=KEYS, required=KEYS)
    token = bounded(text_of(given["id_token"], "id_token"), limits.ID_TOKEN_CHARS_MAX, "id_token")
    nonce = bounded(text_of(given["nonce"], "nonce"), limits.NONCE_CHARS_MAX, "nonce")
    rates.admit_identity()
    identity = _verified(token, nonce)
    with reading() as work:
        user = identities.known(work, identity)
    if user is None:
        return _newcomer(identity)
    with unit_of_work() as work:
        return sessions.started(work, user)


def _newcomer(identity: Identity) -> dict[str, Any]:
    sessions.refuse_if_closed()
    rates.admit_sign_up(identity.email)
    with unit_of_work() as work:
        user = identities.sign_up(work, identity, credits_nanos=sessions.welcome_nanos())
        return sessions.started(work, user)


def _verified(token: str, nonce: str) -> Identity:
    trusted: Trusted = current_app.config[TRUSTED]
    expected = Expected(trusted.provider.issuer, trusted.client_id, nonce)
    with reading() as work:
        now = unix(work.now)
    try:
        return id_tokens.verified(token, expected, trusted.provider.keys, now=now)
    except ClientError as error:
        raise Unavailable(
            "The identity provider is away. Try again in a moment, or sign in with a password if you have one."
        ) from error
