"""Ids: a prefix and 24 random base62 characters (143 bits); derived ids for what must be made only once."""

import re
import secrets
from hashlib import sha256
from string import ascii_letters, digits

ALPHABET = digits + ascii_letters
RANDOM_CHARS = 24

PREFIXES = {
    "account": "acct_",
    "batch": "batch_",
    "error_file": "file-",
    "event": "evt_",
    "file": "file-",
    "hold": "hold_",
    "lease": "lease_",
    "line": "batch_req_",
    "message": "msg_",
    "request": "req_",
    "session": "sess_",
    "token": "tok_",
    "transaction": "txn_",
    "upload": "upload_",
    "upload_part": "part_",
    "webhook": "whk_",
    "user": "user_",
}


def new(kind: str) -> str:
    """A fresh id of a kind of PREFIXES."""
    return PREFIXES[kind] + _base62(secrets.randbelow(len(ALPHABET) ** RANDOM_CHARS))


def derived(kind: str, *parts: str | int) -> str:
    """The one id that these parts have: a retry finds what the first try wrote."""
    number = int.from_bytes(sha256("\x1f".join(str(part) for part in (kind, *parts)).encode()).digest())
    return PREFIXES[kind] + _base62(number)


def pattern(kind: str) -> str:
    """The shape of an id of this kind, as a regular expression."""
    return f"{PREFIXES[kind]}[0-9A-Za-z]{{{RANDOM_CHARS}}}"


def is_id(kind: str, value: str) -> bool:
    """Whether the text has the shape of an id of this kind (says nothing about existence)."""
    return re.fullmatch(pattern(kind), value) is not None


def _base62(number: int) -> str:
    """The last RANDOM_CHARS digits of the number in base 62, lowest first."""
    chars = []
    for _ in range(RANDOM_CHARS):
        number, index = divmod(number, len(ALPHABET))
        chars.append(ALPHABET[index])
    return "".join(chars)
