"""Time comes in from outside: from the database in production's units of work, frozen in tests."""

from datetime import UTC, datetime, timedelta
from typing import Protocol, overload


class Clock(Protocol):
    """Tells the current instant."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""


class SystemClock:
    """This machine's clock: for GPU jobs, which know no database. Durations use ``time.monotonic``."""

    def now(self) -> datetime:
        """The machine's wall time."""
        return datetime.now(UTC)


class FrozenClock:
    """A clock that tests move by hand."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        """The instant that the test set."""
        return self.moment

    def advance(self, **by: float) -> None:
        """Move on by a timedelta's keywords, e.g. ``hours=12``."""
        self.moment += timedelta(**by)


def day_start(moment: datetime) -> datetime:
    """00:00 UTC of the moment's day, when every daily limit starts anew."""
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@overload
def unix(moment: datetime) -> int: ...
@overload
def unix(moment: datetime | None) -> int | None: ...
def unix(moment: datetime | None) -> int | None:
    """Whole Unix seconds as the API shows them; None stays None."""
    return None if moment is None else int(moment.timestamp())
