"""Time from outside."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from gridline.clock import Days

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "day"),
    [
        (NOON, 1),
        (NOON.replace(hour=0), 1),
        (NOON.replace(hour=23, minute=59, second=59, microsecond=999_999), 1),
        (datetime(2026, 3, 1, 23, tzinfo=timezone(timedelta(hours=-5))), 2),
    ],
)
def test_a_day_begins_at_midnight_utc(moment: datetime, day: int) -> None:
    """Whatever zone the moment is told in, and at midnight itself."""
    assert Days.of(moment).begin == datetime(2026, 3, day, tzinfo=UTC)
