"""What operators type, read: reasons, amounts, counts, keys and cursors, each refused with a sentence that helps."""

import re
from collections.abc import Mapping

from gridline.customers import audit
from gridline.errors import InvalidRequest
from gridline.money import credits_nanos, credits_text
from gridline.operate.accounts import Limits

CREDITS_NANOS_MAX = 10**15
"""A million credits: the most that one click moves, so that a slip of the finger stays small."""
COUNT_MAX = 1_000_000
_KEY = re.compile(r"[0-9A-Za-z_]{1,64}")
_CURSOR = re.compile(r"[0-9]{1,18}")
_LIMITS = ("open_batches", "leases", "requests_per_minute")

Form = Mapping[str, str]


def reason(form: Form) -> str:
    """Why, in the operator's words.

    Raises:
        InvalidRequest: none was given, or it is too long or holds control characters.
    """
    return audit.reason(form.get("why", ""))


def amount(form: Form, name: str = "amount") -> int:
    """An amount of credits in nano-credits, exactly as it was typed.

    Raises:
        InvalidRequest: no plain decimal, finer than a nano-credit, or more than one click may move.
    """
    try:
        nanos = credits_nanos(form.get(name, ""))
    except ValueError as error:
        raise InvalidRequest(f"{error}.", param=name) from error
    if abs(nanos) > CREDITS_NANOS_MAX:
        raise InvalidRequest(
            f"At most {credits_text(CREDITS_NANOS_MAX)} credits at once, got {credits_text(nanos)}.",
            param=name,
        )
    return nanos


def key(form: Form) -> str:
    """The key that the page was made with: whatever comes twice under it is done once.

    Raises:
        InvalidRequest: it is missing or not one of ours.
    """
    given = form.get("key", "")
    if not _KEY.fullmatch(given):
        raise InvalidRequest("The form has no key. Open the page again and send it from there.", param="key")
    return given


def count(form: Form, name: str) -> int:
    """A whole number from 0 on.

    Raises:
        InvalidRequest: it is not one, or too large.
    """
    given = form.get(name, "").strip()
    if not _CURSOR.fullmatch(given) or int(given) > COUNT_MAX:
        raise InvalidRequest(f"{given!r} is not a whole number from 0 to {COUNT_MAX}.", param=name)
    return int(given)


def account_limits(form: Form, prefix: str = "") -> Limits:
    """The four limits of a form, all of them; with a prefix those that the operator saw.

    Raises:
        InvalidRequest: one is missing or no number.
    """
    counts = {name: count(form, prefix + name) for name in _LIMITS}
    return Limits(**counts, daily_credits_nanos=amount(form, prefix + "daily_credits"))


def cursor(query: Form, name: str = "before") -> int | None:
    """Where a list goes on; anything that is no number begins it anew."""
    given = query.get(name, "")
    return int(given) if _CURSOR.fullmatch(given) else None


def searched(query: Form, name: str) -> str:
    """A word to search or filter by, without what a database text cannot hold."""
    return query.get(name, "").replace("\0", "").strip()
