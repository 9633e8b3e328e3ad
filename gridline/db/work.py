"""One unit of work = one transaction, committed at the edge. Domain functions take ``work`` and never commit.

A call that only reads takes ``reading()`` instead: the same ``Work``, each statement on its own, one round trip each.
"""

import select as waiting
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from sqlalchemy import URL, Dialect, Engine, Executable, PoolProxiedConnection, create_engine, event, text
from sqlalchemy.exc import DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from gridline.clock import Clock
from gridline.errors import Unavailable
from gridline.settings import settings

CHANNEL = "gridline"
"""The one LISTEN/NOTIFY channel; payloads are the words of ``Work.notify``."""

_NOW = text("SELECT clock_timestamp()")

_READERS: WeakKeyDictionary[Engine, Engine] = WeakKeyDictionary()
_MAKING = Lock()

_AWAY = (OperationalError, InterfaceError, PoolTimeout, psycopg.OperationalError, psycopg.InterfaceError)


class DatabaseClock:
    """Production's clock: the database's wall time, so that every process agrees whatever its own clock says."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def now(self) -> datetime:
        """The instant of asking (not the transaction's start)."""
        row = _run(self._session, _NOW, {})
        if row is None:
            raise TypeError("the database has no time")
        moment: datetime = row[0]
        return moment.astimezone(UTC)


class Work:
    """A transaction with its time: what every domain function is given."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    @property
    def session(self) -> Session:
        """Where statements are run; what is added to it is written by the end."""
        return self._session

    @cached_property
    def now(self) -> datetime:
        """The instant of this unit of work (read once, aware, UTC)."""
        return self._clock.now()

    def notify(self, topic: str) -> None:
        """Wake whoever listens, when this transaction commits. Topics: runs, capacity, batches, credits, messages."""
        self.session.execute(text("SELECT pg_notify(:channel, :topic)"), {"channel": CHANNEL, "topic": topic})

    def first(self, statement: Executable, **values: object) -> Sequence[Any] | None:
        """The first row of a statement over columns, which must be a constant of its module; None without one.

        Prepared once a connection and past all that a session does per statement, so it costs little more than its round
        trip. What the database refuses is raised as the driver's error; values are of types that the driver knows.
        """
        return _run(self.session, statement, values)


class _Reading(Work):
    """Statements without a transaction; ``first`` costs little more than its round trip."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._opened: Session | None = None

    @property
    def session(self) -> Session:
        """Made when it is asked for: a poll does without."""
        if self._opened is None:
            self._opened = Session(self._engine, expire_on_commit=False)
        return self._opened

    @cached_property
    def now(self) -> datetime:
        """The instant of asking (read once, aware, UTC)."""
        return DatabaseClock(self.session).now()

    def close(self) -> None:
        """Give back what was taken."""
        if self._opened is not None:
            self._opened.close()

    def first(self, statement: Executable, **values: object) -> Sequence[Any] | None:
        """As ``Work.first``, with a connection for this statement alone."""
        pooled = self._engine.raw_connection()
        driver = _driver(pooled)
        try:
            return _fetch(driver, statement, self._engine.dialect, values)
        finally:
            if driver.closed:
                pooled.invalidate()
            pooled.close()


def make_engine(url: str | URL, *, options: str = "", **more: Any) -> Engine:
    """An engine whose pool finds a lost connection before it is used, without asking the server."""
    engine = create_engine(
        url,
        pool_size=8,
        max_overflow=8,
        pool_timeout=5,
        connect_args={
            "connect_timeout": 5,
            "application_name": "gridline",
            "options": f"-c statement_timeout=30000 -c lock_timeout=5000 -c timezone=UTC {options}",
        },
        **more,
    )
    event.listen(engine, "checkout", _refuse_the_dead)
    return engine


@cache
def app_engine() -> Engine:
    """The process's engine, as the app role. Made on first use, never before a fork."""
    return make_engine(settings().app_database_url)


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
    except _AWAY as error:
        raise Unavailable("The database is away or busy. Try again in a moment.") from error


@contextmanager
def reading() -> Iterator[Work]:
    """What is committed now, statement by statement, without BEGIN and COMMIT; the database refuses every write.

    Raises:
        Unavailable: the database cannot be reached.
    """
    try:
        with closing(_Reading(_reader(app_engine()))) as work:
            yield work
    except _AWAY as error:
        raise Unavailable("The database is away or busy. Try again in a moment.") from error


def _reader(engine: Engine) -> Engine:
    """The engine's twin for reading, with connections of its own: switching them back and forth would cost more.

    It lives as long as its engine and is disposed of with it.
    """
    with _MAKING:
        twin = _READERS.get(engine)
        if twin is None:
            twin = _READERS[engine] = make_engine(
                engine.url,
                options="-c default_transaction_read_only=on",
                isolation_level="AUTOCOMMIT",
                # Nothing is open when a connection comes back, so there is nothing to roll back.
                pool_reset_on_return=None,
            )
            dispose = twin.dispose
            event.listen(engine, "engine_disposed", lambda _: dispose())
        return twin


def _run(session: Session, statement: Executable, values: dict[str, object]) -> Sequence[Any] | None:
    """The statement's first row, in the session's transaction, after what was added to it."""
    session.flush()
    connection = session.connection()
    return _fetch(_driver(connection.connection), statement, connection.dialect, values)


def _driver(pooled: PoolProxiedConnection) -> psycopg.Connection[tuple[Any, ...]]:
    driver = pooled.driver_connection
    if not isinstance(driver, psycopg.Connection):
        raise TypeError(f"the domain database is reached with psycopg, not {type(driver)}")
    return driver


def _fetch(
    driver: psycopg.Connection[tuple[Any, ...]],
    statement: Executable,
    dialect: Dialect,
    values: dict[str, object],
) -> Sequence[Any] | None:
    sql, fixed = _compiled(statement, dialect)
    cursor = driver.execute(sql, fixed | values, prepare=True)
    return cursor.fetchone() if cursor.description else None


@lru_cache(maxsize=64)
def _compiled(statement: Executable, dialect: Dialect) -> tuple[bytes, dict[str, Any]]:
    """The statement in the driver's words, and the values that it brings itself."""
    compiled = statement.compile(dialect=dialect)  # type: ignore[attr-defined]  # all that are executed are compiled
    return str(compiled).encode(), compiled.params


def _refuse_the_dead(connection: Any, _record: object, _proxy: object) -> None:
    """An idle connection with something to read was told goodbye: the pool makes a new one instead.

    Raises:
        DisconnectionError: it is dead.
    """
    poll = waiting.poll()
    poll.register(connection.pgconn.socket, waiting.POLLIN)
    if connection.closed or poll.poll(0):
        raise DisconnectionError
