"""Passwords: what one must be, and its argon2id hash. Hashing takes a tenth of a second: never inside a transaction."""

import unicodedata
from functools import cache, lru_cache
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gridline import limits
from gridline.errors import InvalidRequest, Unavailable
from gridline.fields import bounded, text_of

# One hash holds 64 MiB: a burst of sign-ins must not take the machine's memory.
_AT_ONCE = BoundedSemaphore(limits.PASSWORD_HASHES_AT_ONCE_MAX)


@cache
def hasher() -> PasswordHasher:
    """The process's hasher: argon2id with the library's parameters, which are RFC 9106's for little memory."""
    return PasswordHasher()


def read(value: object, param: str = "password") -> str:
    """The password in its one form (NFKC), whoever's keyboard it was typed on.

    Raises:
        InvalidRequest: no text, too long, or one that cannot be written as UTF-8.
    """
    given = bounded(text_of(value, param), limits.PASSWORD_CHARS_MAX, param)
    text = bounded(unicodedata.normalize("NFKC", given), limits.PASSWORD_CHARS_MAX, param)
    if any("\ud800" <= one <= "\udfff" for one in text):
        raise InvalidRequest(
            f"Invalid '{param}': it holds half of a character. Type it anew.",
            code="invalid_value",
            param=param,
        )
    return text


def chosen(value: object, param: str = "password") -> str:
    """As ``read``, for a password that is about to be set: it also has to be long enough.

    Raises:
        InvalidRequest: as ``read``, or too short.
    """
    text = read(value, param)
    if len(text) < limits.PASSWORD_CHARS_MIN:
        raise InvalidRequest(
            f"Invalid '{param}': it has {len(text)} characters, and a password needs at least "
            f"{limits.PASSWORD_CHARS_MIN}. Take a few words together.",
            code="string_below_min_length",
            param=param,
        )
    return text


def hashed(password: str) -> str:
    """The hash to store, salt and parameters in it.

    Raises:
        Unavailable: too many are being hashed already.
    """
    _wait()
    try:
        return hasher().hash(password)
    finally:
        _AT_ONCE.release()


def matches(password_hash: str | None, password: str) -> bool:
    """Whether the hash is the password's. None (no such user) takes the same time as a wrong password.

    Raises:
        Unavailable: too many are being hashed already.
    """
    _wait()
    try:
        verified = hasher().verify(_decoy(hasher()) if password_hash is None else password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
    finally:
        _AT_ONCE.release()
    return verified and password_hash is not None


def outdated(password_hash: str) -> bool:
    """Whether the hash was made with other parameters than today's."""
    return hasher().check_needs_rehash(password_hash)


@lru_cache(maxsize=4)
def _decoy(made_by: PasswordHasher) -> str:
    """A hash of the same cost that is nobody's."""
    return made_by.hash("nobody's")


def _wait() -> None:
    if not _AT_ONCE.acquire(timeout=limits.PASSWORD_HASH_WAIT_SECONDS):
        raise Unavailable("Too many people are signing in at this moment. Try again in a moment.")
