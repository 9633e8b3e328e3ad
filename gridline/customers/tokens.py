"""Bearer tokens: made once, stored as a keyed hash, checked at the same cost whatever is wrong with them.

A token is ``gl_live_`` + 32 random base62 characters (190 bits) + 6 characters of CRC-32, so that scanners
and typing errors can be told offline. The hash is HMAC-SHA-256 under the platform's pepper: a copy of the
database lets nobody in. A process remembers a good token for a moment, never one that opened nothing.
"""

import hmac
import secrets
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any
from zlib import crc32

from sqlalchemy import or_, select, update

from gridline import ids, limits
from gridline.clock import unix
from gridline.customers import audit
from gridline.customers.errors import ScopeUnknown
from gridline.customers.memory import Bearer, Memory
from gridline.customers.tables import Account, Token
from gridline.db.work import Work
from gridline.errors import LimitExceeded, NotAuthenticated, NotFound
from gridline.settings import Settings, settings

PREFIX = "gl_live_"
RANDOM_CHARS = 32
CHECK_CHARS = 6
READ = "read"
WRITE = "routing:write"
SCOPES = (READ, WRITE)
LAST_USED_EVERY = timedelta(minutes=1)
REMEMBERED_SECONDS = 2
"""So a revocation works everywhere within 5 seconds, and a token in use costs a look-up every 2."""

_MEMORY = Memory()


def issue(
    work: Work, account_id: str, name: str, *, scopes: Sequence[str] = SCOPES, actor: str = "operator"
) -> tuple[Token, str]:
    """A new token and its text, which is shown now and never again.

    Raises:
        ScopeUnknown: no scope, or one that is not of SCOPES.
    """
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise ScopeUnknown(f"A token's scopes are of {', '.join(SCOPES)}; at least one.", param="scopes")
    text = fresh(PREFIX)
    token = Token(
        id=ids.new("token"),
        account_id=account_id,
        name=name,
        hash=hashed(text),
        last_four=text[-4:],
        scopes=sorted(set(scopes)),
        created_at=work.now,
        created_by=actor,
        expires_at=None,
        revoked_at=None,
        last_used_at=None,
    )
    work.session.add(token)
    details = {"token_id": token.id, "name": name, "scopes": token.scopes}
    audit.record(work, account_id=account_id, actor=actor, action="token.issued", details=details)
    work.session.flush()
    return token, text


def remembered(text: str) -> Bearer | None:
    """The bearer, if this process let that very text in a moment ago; None says nothing about the token."""
    return _MEMORY.get(text)


def recognise(work: Work, text: str) -> Bearer:
    """The bearer of that text, as the database says now; remembered for REMEMBERED_SECONDS, or until it expires.

    Raises:
        NotAuthenticated: it opens nothing.
    """
    asked = time.monotonic()
    token, requests_per_minute_max = _found(work, text)
    bearer = Bearer(token.account_id, token.id, frozenset(token.scopes), requests_per_minute_max)
    seconds: float = REMEMBERED_SECONDS
    if token.expires_at is not None:
        seconds = min(seconds, (token.expires_at - work.now).total_seconds())
    # Counted from before the look-up: what is revoked meanwhile is not believed for longer.
    _MEMORY.put(text, bearer, asked + seconds)
    return bearer


def authenticate(work: Work, text: str) -> Token:
    """The live token of that text.

    Unknown, malformed, expired and revoked cost the same (one hash, one look-up) and get the same answer.

    Raises:
        NotAuthenticated: it opens nothing.
    """
    return _found(work, text)[0]


def _found(work: Work, text: str) -> tuple[Token, int]:
    """The live token and its account's requests a minute; its use is noted."""
    wanted = hashed(text)
    statement = (
        select(Token, Account.requests_per_minute_max)
        .join(Account, Account.id == Token.account_id)
        .where(Token.hash == wanted)
    )
    row = work.session.execute(statement).one_or_none()
    token, requests_per_minute_max = row or (None, 0)
    known = hmac.compare_digest(token.hash if token else "", wanted)
    if token is None or not known or not well_formed(text) or not _live(work, token):
        raise NotAuthenticated(
            "Incorrect API key provided. Check the key, or ask the operator for a new one."
        )
    _touch(work, token)
    return token, requests_per_minute_max


def revoke(work: Work, account_id: str, token_id: str, *, actor: str) -> Token:
    """End a token for good, from the next request on. Twice is as good as once.

    Raises:
        NotFound: the account has no such token.
    """
    token = work.session.execute(
        select(Token).where(Token.id == token_id, Token.account_id == account_id).with_for_update()
    ).scalar_one_or_none()
    if token is None:
        raise NotFound(f"There is no token {token_id!r}.")
    if token.revoked_at is None:
        token.revoked_at = work.now
        details = {"token_id": token.id, "name": token.name}
        audit.record(work, account_id=account_id, actor=actor, action="token.revoked", details=details)
    _MEMORY.forget(token.id)
    return token


def issued_to(
    work: Work, account_id: str, name: str, *, scopes: Sequence[str], actor: str
) -> tuple[Token, str]:
    """As ``issue``, for a customer: at most TOKENS_PER_ACCOUNT_MAX live tokens, counted one maker after another.

    Raises:
        ScopeUnknown: no scope, or one that is not of SCOPES.
        LimitExceeded: the account has all the tokens that it may have.
    """
    work.session.execute(select(Account.id).where(Account.id == account_id).with_for_update())
    live = len(listed(work, account_id))
    if live >= limits.TOKENS_PER_ACCOUNT_MAX:
        raise LimitExceeded(
            f"Your account has {live} of {limits.TOKENS_PER_ACCOUNT_MAX} API tokens. Revoke one that is no longer "
            "used, then make this one again; no token was made.",
            limit={"name": "tokens", "limit": limits.TOKENS_PER_ACCOUNT_MAX, "current": live},
        )
    return issue(work, account_id, name, scopes=scopes, actor=actor)


def listed(work: Work, account_id: str) -> Sequence[Token]:
    """The account's tokens that open something now, newest first."""
    return work.session.scalars(
        select(Token)
        .where(
            Token.account_id == account_id,
            Token.revoked_at.is_(None),
            or_(Token.expires_at.is_(None), Token.expires_at > work.now),
        )
        .order_by(Token.created_at.desc(), Token.id)
    ).all()


def token_object(token: Token) -> dict[str, Any]:
    """A token as the API shows it: never its text."""
    return {
        "id": token.id,
        "object": "token",
        "name": token.name,
        "scopes": token.scopes,
        "prefix": PREFIX,
        "last_four": token.last_four,
        "created_at": unix(token.created_at),
        "created_by": token.created_by.partition(":")[0],
        "last_used_at": unix(token.last_used_at),
        "expires_at": unix(token.expires_at),
    }


def fresh(prefix: str) -> str:
    """The text of a new bearer: the prefix, RANDOM_CHARS random base62 characters, and their check."""
    body = prefix + "".join(secrets.choice(ids.ALPHABET) for _ in range(RANDOM_CHARS))
    return body + checksum(body)


def hashed(text: str) -> str:
    """The hex digest a token is stored and found under."""
    return hmac.digest(_pepper(settings()), text.encode(errors="surrogateescape"), "sha256").hex()


@lru_cache(maxsize=8)
def _pepper(chosen: Settings) -> bytes:
    return chosen.secret("token_pepper").encode()


def checksum(text: str) -> str:
    """Six base62 characters of the text's CRC-32."""
    number = crc32(text.encode(errors="surrogateescape"))
    chars = []
    for _ in range(CHECK_CHARS):
        number, index = divmod(number, len(ids.ALPHABET))
        chars.append(ids.ALPHABET[index])
    return "".join(chars)


def well_formed(text: str, prefix: str = PREFIX) -> bool:
    """Whether the text has a bearer's shape and its checksum fits (says nothing about existence)."""
    body, check = text[:-CHECK_CHARS], text[-CHECK_CHARS:]
    return body.startswith(prefix) and len(body) == len(prefix) + RANDOM_CHARS and checksum(body) == check


def _live(work: Work, token: Token) -> bool:
    return token.revoked_at is None and (token.expires_at is None or token.expires_at > work.now)


def _touch(work: Work, token: Token) -> None:
    """Note the use, at most once a minute: a poll must not cost a write."""
    if token.last_used_at is not None and token.last_used_at > work.now - LAST_USED_EVERY:
        return
    work.session.execute(
        update(Token)
        .where(
            Token.id == token.id,
            or_(Token.last_used_at.is_(None), Token.last_used_at <= work.now - LAST_USED_EVERY),
        )
        .values(last_used_at=work.now)
        .execution_options(synchronize_session=False)
    )
