"""Signing up, in and out. What OpenAI lacks; a session then makes tokens, and reads and acts as a token with both scopes."""

from typing import Any

from flask import Blueprint

from api import auth, bodies, queries, rates
from api.reference.operations import operation
from gridline import limits
from gridline.clock import unix
from gridline.customers import accounts, passwords, sessions, users
from gridline.customers.errors import CredentialsWrong, SignUpClosed
from gridline.customers.tables import Session, User
from gridline.db.work import Work, reading, unit_of_work
from gridline.errors import SettingInvalid
from gridline.fields import keys_of
from gridline.money import credits_nanos
from gridline.settings import SignUp, settings

KEYS = ("email", "password")

entrance = queries.strict(Blueprint("entrance", __name__))
blueprint = queries.strict(auth.guard_for_users(Blueprint("sessions", __name__)))


@entrance.post("/users")
@operation(
    "Access",
    "signUp",
    "Sign up",
    body="Credentials",
    returns="SessionStarted",
    refuses=(
        "string_above_max_length",
        "string_below_min_length",
        "sign_up_closed",
        "email_taken",
        "rate_limit_exceeded",
        "service_unavailable",
    ),
)
def sign_up() -> dict[str, Any]:
    """Open an account of your own, and sign in to it. Sent again with the same password, it signs in."""
    given = keys_of(bodies.json_body(), known=KEYS, required=KEYS)
    refuse_if_closed()
    email, password = users.normal_email(given["email"]), passwords.chosen(given["password"])
    rates.admit_sign_up(email)
    known = _known(email)
    # One hash or one check: an e-mail that is known takes as long as one that is not.
    if known is not None and passwords.matches(known.password_hash, password):
        with unit_of_work() as work:
            return started(work, known)
    made = "" if known is not None else passwords.hashed(password)
    with unit_of_work() as work:
        return started(work, users.sign_up(work, email, made, credits_nanos=welcome_nanos()))


@entrance.post("/sessions")
@operation(
    "Access",
    "signIn",
    "Sign in",
    body="Credentials",
    returns="SessionStarted",
    refuses=(
        "string_above_max_length",
        "invalid_credentials",
        "rate_limit_exceeded",
        "service_unavailable",
    ),
)
def sign_in() -> dict[str, Any]:
    """Start a session with e-mail and password. Its secret is in this answer and in no other."""
    given = keys_of(bodies.json_body(), known=KEYS, required=KEYS)
    email, password = users.normal_email(given["email"]), passwords.read(given["password"])
    rates.admit_sign_in(email)
    user = _known(email)
    right = passwords.matches(user.password_hash if user else None, password)
    if user is None or user.password_hash is None or not right:
        raise CredentialsWrong(
            "No user has this e-mail with this password. Check both, or sign up if you have not yet."
        )
    renewed = passwords.hashed(password) if passwords.outdated(user.password_hash) else None
    with unit_of_work() as work:
        if renewed is not None:
            users.rehash(work, user.id, renewed)
        return started(work, user)


@blueprint.get("/session")
@operation("Access", "retrieveSession", "Look at the session", returns="Session")
def show_session() -> dict[str, Any]:
    """Who is signed in, to which account, and until when."""
    who = auth.caller()
    with reading() as work:
        session = sessions.get(work, who.token_id)
        return _shown(work, session, work.session.get_one(User, session.user_id))


@blueprint.delete("/sessions")
@operation("Access", "signOut", "Sign out", returns="SessionEnded")
def sign_out() -> dict[str, Any]:
    """End the session that this call is made with; its tokens go on."""
    who = auth.caller()
    with unit_of_work() as work:
        sessions.end(work, who.token_id, actor=who.actor)
    return {"id": who.token_id, "object": "session", "deleted": True}


def welcome_nanos() -> int:
    """What an account gets at sign-up, in nano-credits.

    Raises:
        SettingInvalid: the setting is no amount, or one below zero.
    """
    text = settings().sign_up_credits
    try:
        nanos = credits_nanos(text)
    except ValueError as error:
        raise SettingInvalid(f"GRIDLINE_SIGN_UP_CREDITS cannot be used: {error}.") from error
    if nanos < 0:
        raise SettingInvalid(f"GRIDLINE_SIGN_UP_CREDITS must be 0 or more, got {text!r}.")
    return nanos


def _known(email: str) -> User | None:
    with reading() as work:
        return users.find(work, email)


def refuse_if_closed() -> None:
    """Refuse who would be a new user where nobody signs up by themselves.

    Raises:
        SignUpClosed: this is such a platform.
    """
    if settings().sign_up is SignUp.CLOSED:
        raise SignUpClosed(
            "On this platform customers do not sign up by themselves. Ask the operator for an account and a token."
        )


def started(work: Work, user: User) -> dict[str, Any]:
    """A new session of the user, as an answer that shows its secret."""
    session, secret = sessions.start(work, user.id)
    return _shown(work, session, user) | {"secret": secret}


def _shown(work: Work, session: Session, user: User) -> dict[str, Any]:
    account = accounts.get(work, session.account_id)
    return {
        "id": session.id,
        "object": "session",
        "created_at": unix(session.created_at),
        "expires_at": unix(session.expires_at),
        "idle_seconds": limits.SESSION_IDLE_SECONDS,
        "user": {"id": user.id, "email": user.email},
        "account": {"id": account.id, "name": account.name},
    }
