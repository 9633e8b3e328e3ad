"""UTC months to choose from: what a statement and a usage page are about, named in the address."""

from calendar import monthrange
from datetime import datetime

import streamlit as st

SHOWN = 12
"""A year back: older ones are in the statement's CSV, for any days."""


def choose(at: datetime) -> str:
    """The month that the visitor looks at, as ``2026-01``; this one until another is chosen."""
    offered = before(at, SHOWN)
    return st.selectbox("Month (UTC)", offered, key="month", bind="query-params", width=220) or offered[0]


def before(at: datetime, how_many: int) -> list[str]:
    """This month and those before it, the newest first.

    >>> before(datetime(2026, 2, 3), 3)
    ['2026-02', '2026-01', '2025-12']
    """
    count = at.year * 12 + at.month - 1
    return [f"{one // 12}-{one % 12 + 1:02}" for one in range(count, count - how_many, -1)]


def named(month: str) -> str:
    """A month in words.

    >>> named("2026-02")
    'February 2026'
    """
    return datetime.strptime(month, "%Y-%m").strftime("%B %Y")  # noqa: DTZ007 - no instant, only a name


def days(month: str) -> dict[str, str]:
    """Its first and last day, as the API takes them.

    >>> days("2028-02")
    {'from': '2028-02-01', 'to': '2028-02-29'}

    Raises:
        ValueError: it is no month.
    """
    year, number = (int(part) for part in month.split("-"))
    return {"from": f"{month}-01", "to": f"{month}-{monthrange(year, number)[1]:02}"}
