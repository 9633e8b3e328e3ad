"""List pages as OpenAI's SDKs walk them: an id to go on after, a limit, and an exact ``has_more``."""

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

from flask import request

from gridline import limits
from gridline.clock import Days
from gridline.errors import InvalidRequest

YEARS = range(2000, 3000)


def query(name: str) -> str | None:
    """A query parameter that may be given once.

    Raises:
        InvalidRequest: given several times.
    """
    values = request.args.getlist(name)
    if len(values) > 1:
        raise InvalidRequest(
            f"Invalid '{name}': given {len(values)} times.", code="invalid_value", param=name
        )
    return values[0] if values else None


def query_limit(*, default: int, most: int) -> int:
    """The page's size.

    Raises:
        InvalidRequest: not a whole number from 1 to ``most``.
    """
    text = query("limit")
    if text is None:
        return default
    limit = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0
    if not 1 <= limit <= most:
        raise InvalidRequest(
            f"Invalid 'limit': expected an integer from 1 to {most}.", code="invalid_value", param="limit"
        )
    return limit


def query_one_of(name: str, allowed: Sequence[str]) -> str | None:
    """A query parameter with a fixed set of values.

    Raises:
        InvalidRequest: another value.
    """
    value = query(name)
    if value is not None and value not in allowed:
        names = ", ".join(f"'{one}'" for one in allowed)
        raise InvalidRequest(
            f"Invalid value for '{name}'. Supported values are: {names}.", code="invalid_value", param=name
        )
    return value


def query_days(now: datetime) -> Days:
    """The UTC days from ``from`` to ``to``, both included: without ``to`` up to today, without ``from`` from the month's first.

    Raises:
        InvalidRequest: no date, the wrong way round, or more days than one answer covers.
    """
    last = query_day("to") or Days.of(now).last
    days = Days(query_day("from") or last.replace(day=1), last)
    if days.first > days.last or days.last - days.first >= timedelta(days=limits.STATEMENT_DAYS_MAX):
        raise InvalidRequest(
            f"Invalid 'from': expected a day up to 'to' ({days.last}), at most {limits.STATEMENT_DAYS_MAX} days in all, "
            f"but got {days.first}.",
            code="invalid_value",
            param="from",
        )
    return days


def query_day(name: str) -> date | None:
    """A UTC day, if one is given.

    Raises:
        InvalidRequest: another text than YYYY-MM-DD, or no day of a calendar.
    """
    text = query(name)
    if text is None:
        return None
    try:
        day = date.fromisoformat(text) if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else None
    except ValueError:
        day = None
    if day is None or day.year not in YEARS:
        raise InvalidRequest(
            f"Invalid '{name}': expected a UTC day as YYYY-MM-DD.", code="invalid_value", param=name
        )
    return day


def page_object(data: list[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    """One page; past the end ``data`` is empty and ``has_more`` false, or old SDKs would never stop."""
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }
