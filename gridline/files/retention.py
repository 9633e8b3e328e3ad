"""How long files are kept: what may be asked for, and what is promised whatever was asked."""

from datetime import datetime, timedelta

from gridline import limits
from gridline.errors import InvalidRequest

INPUT_PROMISED_DAYS = 7
"""An input is kept this long after its upload, however short an expiry was asked for."""


def check_expires_after(seconds: int, param: str) -> int:
    """The seconds, if an expiry may be that long.

    Raises:
        InvalidRequest: below or above what limits.py allows; ``param`` is named.
    """
    low, high = limits.EXPIRES_AFTER_SECONDS_MIN, limits.EXPIRES_AFTER_SECONDS_MAX
    if low <= seconds <= high:
        return seconds
    raise InvalidRequest(
        f"Invalid '{param}': expected a number of seconds from {low} to {high}. Ask for one in that range.",
        code="integer_below_min_value" if seconds < low else "integer_above_max_value",
        param=param,
    )


def input_expires_at(created_at: datetime, asked_seconds: int | None) -> datetime:
    """When an input may be deleted: the later of what was asked and what is promised; 30 days by default."""
    if asked_seconds is None:
        return created_at + timedelta(days=limits.INPUT_KEEP_DAYS)
    return created_at + max(timedelta(seconds=asked_seconds), timedelta(days=INPUT_PROMISED_DAYS))
