"""One unit of work = one transaction, committed at the edge. Domain functions take ``work`` and never commit."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, cached_property

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from gridline.clock import Clock
from gridline.errors import Unavailable
from gridline.settings import settings

CHANNEL = "gridline"
"""The one LISTEN/NOTIFY channel; payloads are the words of ``Work.notify``."""


class DatabaseClock:
    """Production's clock: the database's wall time, so that every process agrees whatever its own clock says."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def now(self) -> datetime:
        """The instant of asking (not the transaction's start)."""
        moment: datetime = self._session.execute(text("SELECT clock_timestamp()")).scalar_one()
        return moment.astimezone(UTC)


class Work:
    """A transaction with its time: what every domain function is given."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self.session = session
        self._clock = clock

    @cached_property
    def now(self) -> datetime:
        """The instant of this unit of work (read once, aware, UTC)."""
        return self._clock.now()

    def notify(self, topic: str) -> None:
        """Wake whoever listens, when this transaction commits. Topics: runs, capacity, batches, credits."""
        self.session.execute(text("SELECT pg_notify(:channel, :topic)"), {"channel": CHANNEL, "topic": topic})


@cache
def app_engine() -> Engine:
    """The process's engine, as the app role. Made on first use, never before a fork."""
    return create_engine(
        settings().app_database_url,
        pool_size=8,
        max_overflow=8,
        pool_pre_ping=True,
        pool_timeout=5,
        connect_args={
            "connect_timeout": 5,
            "application_name": "gridline",
            "options": "-c statement_timeout=30000 -c lock_timeout=5000 -c timezone=UTC",
        },
    )


@contextmanager
def unit_of_work(*, engine: Engine | None = None, clock: Clock | None = None) -> Iterator[Work]:
    """A transaction that commits on leaving and rolls back on any error.

    Raises:
        Unavailable: the database cannot be reached; nothing was written unless the commit's answer was lost,
            which is why every step may run twice.
    """
    try:
        with Session(engine or app_engine(), expire_on_commit=False) as session, session.begin():
            yield Work(session, clock or DatabaseClock(session))
    except (OperationalError, InterfaceError, PoolTimeout) as error:
        raise Unavailable("The database is away or busy. Try again in a moment.") from error
