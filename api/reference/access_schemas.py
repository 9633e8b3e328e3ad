"""What signing up and in, sessions and tokens take and give."""

from api.reference.shapes import (
    Schema,
    choice,
    constant,
    identity,
    listed,
    moment,
    nullable,
    page,
    request,
    text,
    thing,
    whole,
)
from gridline import limits
from gridline.customers import sessions, tokens

CREATED = 1767614400


def schemas(*, identities: bool) -> dict[str, Schema]:
    """Components by name; ``identities``: with those of an identity provider."""
    return ({"IdentityToken": _identity_token()} if identities else {}) | {
        "Credentials": _credentials(),
        "Session": thing("Who is signed in.", _session()),
        "SessionStarted": thing(
            "A session that has just begun.",
            _session()
            | {
                "secret": text(
                    "Send it as `Authorization: Bearer …`; it is never shown again.", f"{sessions.PREFIX}…"
                )
            },
        ),
        "SessionEnded": _deleted("session", "That the session has ended."),
        "TokenCreate": _create(),
        "Token": thing("An API token, without its text.", _token()),
        "TokenCreated": thing(
            "A token that was just made.",
            _token()
            | {"secret": text("The token itself: keep it, it is never shown again.", f"{tokens.PREFIX}…")},
        ),
        "TokenList": page("Token", cursors=False),
        "TokenRevoked": _deleted("token", "That the token opens nothing any more."),
    }


def _credentials() -> Schema:
    return request(
        "Who you are.",
        {
            "email": text(
                "Your e-mail; large and small letters are the same.",
                "ann@example.com",
                maxLength=limits.EMAIL_CHARS_MAX,
            ),
            "password": text(
                f"At least {limits.PASSWORD_CHARS_MIN} characters when it is chosen, in any script; compared in Unicode's "
                "form NFKC.",
                "correct horse battery staple",
                maxLength=limits.PASSWORD_CHARS_MAX,
            ),
        },
        required=("email", "password"),
    )


def _identity_token() -> Schema:
    return request(
        "Who an OpenID Connect provider says that you are.",
        {
            "id_token": text(
                "The ID token of a sign-in that has just been made, signed with RS256 or ES256, with `email` and "
                "`email_verified`.",
                "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiIxIn0.c2ln",
                maxLength=limits.ID_TOKEN_CHARS_MAX,
            ),
            "nonce": text(
                "The nonce that the sign-in was begun with.", "n-0S6_WzA2Mj", maxLength=limits.NONCE_CHARS_MAX
            ),
        },
        required=("id_token", "nonce"),
    )


def _session() -> dict[str, Schema]:
    return {
        "id": identity("session", "The session's id."),
        "object": constant("session", "Always `session`."),
        "created_at": moment("When it began.", CREATED),
        "expires_at": moment("When it ends however much it is used.", CREATED + limits.SESSION_SECONDS_MAX),
        "idle_seconds": whole("Unused for so many seconds it ends earlier.", limits.SESSION_IDLE_SECONDS),
        "user": thing(
            "Who is signed in.",
            {
                "id": identity("user", "The user's id."),
                "email": text("The e-mail in small letters.", "ann@example.com"),
            },
        ),
        "account": thing(
            "The account that everything is done for.",
            {"id": identity("account", "The account's id."), "name": text("Its name.", "ann@example.com")},
        ),
    }


def _create() -> Schema:
    scopes = listed(choice("A scope.", tokens.SCOPES), "What the token may do; left out, both.", least=1)
    return request(
        "A token to be.",
        {
            "name": text("What it is for.", "nightly evaluations", maxLength=limits.TOKEN_NAME_CHARS_MAX),
            "scopes": scopes,
        },
        required=("name",),
    )


def _token() -> dict[str, Schema]:
    return {
        "id": identity("token", "The token's id."),
        "object": constant("token", "Always `token`."),
        "name": text("What it is for.", "nightly evaluations"),
        "scopes": listed(choice("A scope.", tokens.SCOPES), "What it may do."),
        "prefix": text("How it begins.", tokens.PREFIX),
        "last_four": text("How it ends.", "7Yqk"),
        "created_at": moment("When it was made.", CREATED),
        "created_by": choice("Who made it.", ("user", "operator")),
        "last_used_at": nullable(moment("When it was last used, to the minute.", CREATED + 60)),
        "expires_at": nullable(moment("When it ends by itself.", CREATED + 86_400)),
    }


def _deleted(kind: str, meaning: str) -> Schema:
    return thing(
        meaning,
        {
            "id": identity(kind, f"The {kind}'s id."),
            "object": constant(kind, f"Always `{kind}`."),
            "deleted": constant(True, "Always true."),
        },
    )
