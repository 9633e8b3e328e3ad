"""How long files are kept: what may be asked for, and what is promised, or the account's policy where the dialect says so."""

from datetime import datetime, timedelta

from gridline import limits
from gridline.customers import accounts
from gridline.db.work import Work
from gridline.errors import InvalidRequest
from gridline.fields import integer_of, keys_of, one_of
from gridline.files.tables import File
from gridline.profiles.profile import current


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


def policy(work: Work, account_id: str) -> timedelta | None:
    """How long the account keeps its data; None in dialects that promise figures of their own instead."""
    if not current().retention_by_account:
        return None
    return timedelta(days=accounts.get(work, account_id).retention_days)


def input_expires_at(
    created_at: datetime, asked_seconds: int | None, policy: timedelta | None = None
) -> datetime:
    """When an input may be deleted: the later of what was asked and what is promised, 30 days by default.

    Under a policy: when that says, or sooner if that was asked.
    """
    asked = None if asked_seconds is None else timedelta(seconds=asked_seconds)
    if policy is not None:
        return created_at + (policy if asked is None else min(asked, policy))
    if asked is None:
        return created_at + timedelta(days=limits.INPUT_KEEP_DAYS)
    return created_at + max(asked, timedelta(days=limits.INPUT_PROMISED_DAYS))


def keep_for_batch(file: File, window_ends_at: datetime, policy: timedelta | None = None) -> None:
    """Keep an input, whose row is locked, past the window of a batch that reads it; never for less than before.

    A policy lengthens nothing.

    Raises:
        InvalidRequest: under a policy the input would expire before the window ends.
    """
    if file.expires_at is None:
        return
    if policy is None:
        until = window_ends_at + timedelta(days=limits.INPUT_PROMISED_DAYS)
        file.expires_at = max(file.expires_at, until)
    elif file.expires_at < window_ends_at:
        raise InvalidRequest(
            f"File {file.id} expires at {file.expires_at:%Y-%m-%d %H:%M} UTC, before the completion window ends "
            f"({window_ends_at:%Y-%m-%d %H:%M} UTC); your account keeps files for {policy.days} days. Upload it again, "
            "without a shorter expires_after, and use the new id; for a longer policy write to the operator.",
            code="input_expires_too_early",
            param="input_file_id",
        )


def output_expires_at(
    now: datetime, asked_seconds: int | None, *, policy: timedelta | None, input_expires_at: datetime | None
) -> datetime:
    """When a result file that is written now may be deleted: after what was asked, 30 days by default.

    Under a policy: after what that says, or sooner if that was asked, and never later than the input that it comes from.
    """
    asked = None if asked_seconds is None else timedelta(seconds=asked_seconds)
    if policy is None:
        return now + (asked or timedelta(days=limits.OUTPUT_KEEP_DAYS))
    ends = now + (policy if asked is None else min(asked, policy))
    return ends if input_expires_at is None else min(ends, input_expires_at)
