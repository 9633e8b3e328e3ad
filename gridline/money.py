"""Exact money: integers in nano-credits (1 credit = 1 USD = 10**9). No float ever touches an amount."""

import re

NANOS_PER_CREDIT = 1_000_000_000


def credits_text(amount_nanos: int) -> str:
    """An amount as all JSON shows it: a decimal string in credits with nine digits after the point.

    >>> credits_text(-1_500_000_000)
    '-1.500000000'
    """
    sign = "-" if amount_nanos < 0 else ""
    whole, rest = divmod(abs(amount_nanos), NANOS_PER_CREDIT)
    return f"{sign}{whole}.{rest:09d}"


def credits_nanos(text: str) -> int:
    """The amount that a decimal text of credits means, exactly.

    Raises:
        ValueError: not a plain decimal, or finer than a nano-credit.
    """
    match = re.fullmatch(r"(-?)([0-9]+)(?:\.([0-9]{1,9}))?", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not an amount of credits: digits, at most nine after the point")
    sign, whole, rest = match.groups()
    nanos = int(whole) * NANOS_PER_CREDIT + int((rest or "").ljust(9, "0"))
    return -nanos if sign else nanos
