"""How long files are kept: what may be asked for, and what is promised whatever was asked."""

from datetime import datetime, timedelta

from gridline import limits
from gridline.errors import InvalidRequest
from gridline.fields import integer_of, keys_of, one_of
from gridline.files.tables import File


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


def read_expires_after(value: object, param: str) -> int | None:
    """The seconds of OpenAI's ``{"anchor": "created_at", "seconds": …}``; null counts as absent.

    Raises:
        InvalidRequest: another shape, another anchor, or out of range.
    """
    if value is None:
        return None
    names = ("anchor", "seconds")
    given = keys_of(value, known=names, required=names, param=param)
    one_of(given["anchor"], ("created_at",), f"{param}.anchor")
    name = f"{param}.seconds"
    return check_expires_after(integer_of(given["seconds"], name), name)


def input_expires_at(created_at: datetime, asked_seconds: int | None) -> datetime:
    """When an input may be deleted: the later of what was asked and what is promised; 30 days by default."""
    if asked_seconds is None:
        return created_at + timedelta(days=limits.INPUT_KEEP_DAYS)
    return created_at + max(timedelta(seconds=asked_seconds), timedelta(days=limits.INPUT_PROMISED_DAYS))


def keep_for_batch(file: File, window_ends_at: datetime) -> None:
    """Keep an input, whose row is locked, past the window of a batch that reads it; never for less than before."""
    until = window_ends_at + timedelta(days=limits.INPUT_PROMISED_DAYS)
    if file.expires_at is not None:
        file.expires_at = max(file.expires_at, until)
