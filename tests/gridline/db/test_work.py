"""Units of work and reading: what a read costs, what it sees, and how a lost connection is found."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from sqlalchemy import Engine, bindparam, select, text, update
from sqlalchemy.exc import InternalError

from gridline.customers.tables import Account
from gridline.db import work as works
from gridline.db.work import Work, reading, unit_of_work
from gridline.errors import Unavailable
from gridline.operate import postgres

_BY_NAME = select(Account.id, Account.open_batches_max, Account.datacenter_only).where(
    Account.name == bindparam("name"), Account.open_batches_max > 1
)


@pytest.fixture
def real(
    database: Engine, server: postgres.Postgres, database_name: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Engine]:
    """The engine as programs make it, on the test's database."""
    engine = works.make_engine(server.url(postgres.APP, database_name))
    monkeypatch.setattr(works, "app_engine", lambda: engine)
    yield engine
    engine.dispose()


def kill(server: postgres.Postgres, database_name: str) -> None:
    """End every backend of programs, as a restart of the database does, and wait until they are gone."""
    ours = "FROM pg_stat_activity WHERE datname = %s AND application_name = 'gridline'"
    with server.connect("postgres") as connection:
        (row,) = connection.execute(f"SELECT count(pg_terminate_backend(pid, 10000)) {ours}", [database_name])
        assert row[0]
        assert connection.execute(f"SELECT 1 {ours}", [database_name]).fetchall() == []


def open_account(name: str) -> None:
    """An account of that name, committed."""
    with unit_of_work() as work:
        account = Account(id=f"acct_{name}", name=name, created_at=work.now, open_batches_max=2)
        account.leases_max = account.daily_credits_nanos_max = 1
        work.session.add(account)


def sent(engine: Engine) -> list[str]:
    """The messages that a poll's read sends to the server, once its statement is prepared."""
    with reading() as work:
        work.first(_BY_NAME, name="ann")
    pooled = engine.raw_connection()
    connection = pooled.driver_connection
    pooled.close()
    assert connection is not None
    with tempfile.NamedTemporaryFile() as file:
        connection.pgconn.trace(file.fileno())
        with reading() as work:
            assert tuple(work.first(_BY_NAME, name="ann") or ()) == ("acct_ann", 2, False)
        connection.pgconn.untrace()
        assert connection.info.transaction_status == TransactionStatus.IDLE
        lines = Path(file.name).read_text().splitlines()
    return [line.split("\t")[3] for line in lines if line.split("\t")[1] == "F"]


def test_a_read_is_one_round_trip(real: Engine) -> None:
    """No BEGIN, no COMMIT, no ping, no parsing: a poll binds and runs what is prepared."""
    open_account("ann")
    assert sent(works._reader(real)) == ["Bind", "Describe", "Execute", "Sync"]


def test_both_kinds_of_work_give_the_same_row(real: Engine) -> None:
    """What reads with ``first`` may run in a unit of work, too; nothing found is None."""
    open_account("ann")

    def found(work: Work) -> list[object]:
        return [tuple(work.first(_BY_NAME, name=name) or ()) for name in ("ann", "bob")]

    with reading() as work, unit_of_work() as other:
        assert found(work) == found(other) == [("acct_ann", 2, False), ()]
        assert work.session.scalars(select(Account.name)).all() == ["ann"]


@pytest.mark.thorough
def test_a_read_sees_what_was_committed_just_before(real: Engine) -> None:
    """Read your writes, two hundred times, on whatever connection; inside one reading, too."""
    open_account("ann")
    with reading() as kept:
        for number in range(2, 202):
            with unit_of_work() as work:
                work.session.execute(update(Account).values(open_batches_max=number))
            with reading() as fresh:
                seen = [one.first(_BY_NAME, name="ann") for one in (kept, fresh)]
            assert [row[1] for row in seen if row] == [number, number]


def test_reading_writes_nothing(real: Engine) -> None:
    """A write that slips into a reading is refused by the database, not committed by itself."""
    open_account("ann")
    with pytest.raises(InternalError, match="read-only transaction"), reading() as work:
        work.session.execute(update(Account).values(open_batches_max=9))
    with reading() as work:
        assert work.session.scalars(select(Account.open_batches_max)).one() == 2


def test_connections_for_reading_are_closed_with_their_engine_and_not_before(
    real: Engine, server: postgres.Postgres, database_name: str
) -> None:
    """Disposing of an engine closes its readers too; that other engines read meanwhile closes nothing."""
    with reading() as work:
        work.first(_BY_NAME, name="ann")
    pooled = works._reader(real).raw_connection()
    connection = pooled.driver_connection
    pooled.close()
    assert isinstance(connection, psycopg.Connection)
    others = [works.make_engine(server.url(postgres.APP, database_name)) for _ in range(70)]
    assert len({id(works._reader(engine)) for engine in [real, *others]}) == 71
    assert not connection.closed
    real.dispose()
    assert connection.closed


def test_lost_connections_are_found_without_asking(
    real: Engine, server: postgres.Postgres, database_name: str
) -> None:
    """After a restart of the database the next read and the next write just work: each gets a new connection."""
    open_account("ann")
    for _ in range(3):
        with reading() as work, unit_of_work() as other:
            assert work.first(_BY_NAME, name="ann")
            other.session.execute(text("SELECT 1"))
        kill(server, database_name)
    with reading() as work:
        assert work.first(_BY_NAME, name="ann")
        assert work.session.scalars(select(Account.name)).all() == ["ann"]
    with unit_of_work() as work:
        work.session.execute(update(Account).values(open_batches_max=3))


def test_a_connection_lost_in_the_middle_is_a_503_and_the_next_works(
    real: Engine, server: postgres.Postgres, database_name: str
) -> None:
    """What is cut off while it runs is Unavailable, which carries Retry-After; nothing dead stays in the pool."""
    open_account("ann")

    def cut_off(work: Work) -> None:
        work.session.execute(text("SELECT 1"))
        kill(server, database_name)
        work.session.execute(text("SELECT 1"))

    for cut in (reading, unit_of_work):
        with pytest.raises(Unavailable), cut() as work:
            cut_off(work)
        with cut() as work:
            assert work.first(_BY_NAME, name="ann")


def test_a_prepared_read_that_is_cut_off_is_a_503_and_the_next_works(
    real: Engine, server: postgres.Postgres, database_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above for the way past the session: a connection that dies after it was looked at."""
    open_account("ann")
    reader = works._reader(real)
    with reading() as work:
        work.first(_BY_NAME, name="ann")
        raw = reader.raw_connection

        def dying() -> object:
            pooled = raw()
            kill(server, database_name)
            return pooled

        monkeypatch.setattr(reader, "raw_connection", dying)
        with pytest.raises(Unavailable), reading() as other:
            other.first(_BY_NAME, name="ann")
        monkeypatch.setattr(reader, "raw_connection", raw)
        assert work.first(_BY_NAME, name="ann")
