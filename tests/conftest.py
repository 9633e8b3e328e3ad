"""Fixtures that every room shares: one embedded PostgreSQL a process, a fresh migrated database a test."""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Engine, create_engine, text

from gridline import clock as clocks
from gridline.db import work as works
from gridline.db.every_table import METADATA
from gridline.db.migrate import migrate
from gridline.operate import postgres, provisioning

if TYPE_CHECKING:
    from gridline.storage.objects import Store
    from tests.stack import Stack

TEMPLATE = "gridline_template"
_CHILDREN_FIRST = [table.name for table in reversed(METADATA.sorted_tables)]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the conformance suite and the simulation; pytest asks here, before it looks into their folders."""
    parser.addoption(
        "--write-conformance", action="store_true", help="write docs/conformance.md if the whole suite passed"
    )
    parser.addoption("--seeds", help="the simulation's seeds: one, or first:end")


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def server_folder() -> Path:
    """A new folder that the database's system user can reach, also when the tests run as root."""
    parent = "/var/lib" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="gridline-test-", dir=parent))
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Postgres]:
    """An embedded PostgreSQL with its roles and a migrated template (durability off: tests lose nothing)."""
    folder = server_folder()
    options = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
    cluster = postgres.Postgres(folder / "postgres", free_port(), folder / "secrets", options)
    child = cluster.start()
    try:
        provisioning.provision_embedded(cluster)
        with cluster.connect("postgres") as connection:
            provisioning.create_database(connection, TEMPLATE, postgres.OWNER)
        owner = create_engine(cluster.url(postgres.OWNER, TEMPLATE))
        with owner.begin() as connection:
            migrate(connection)
        owner.dispose()
        yield cluster
    finally:
        postgres.stop(child)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def database_name(server: postgres.Postgres) -> str:
    """The one domain database of this process; each test that uses it leaves it empty."""
    name = f"test_{os.getpid()}"
    with server.connect("postgres") as connection:
        provisioning.create_database(connection, name, postgres.OWNER, template=TEMPLATE)
    return name


@pytest.fixture(scope="session")
def owner_engine(server: postgres.Postgres, database_name: str) -> Iterator[Engine]:
    """The process's database as its owner."""
    engine = create_engine(
        server.url(postgres.OWNER, database_name), connect_args={"options": "-c lock_timeout=20000"}
    )
    yield engine
    engine.dispose()


@pytest.fixture
def owner(owner_engine: Engine) -> Engine:
    """The test's database as its owner: for looking behind the app's back."""
    return owner_engine


@pytest.fixture(scope="session")
def app_engine(server: postgres.Postgres, database_name: str) -> Iterator[Engine]:
    """The process's database as the app role; its connections are shared, since making one is dear."""
    url = server.url(postgres.APP, database_name)
    engine = create_engine(url, pool_size=20, max_overflow=80, connect_args={"options": "-c timezone=UTC"})
    yield engine
    engine.dispose()


@pytest.fixture
def database(app_engine: Engine, owner_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The test's database as the app role, empty; every unit of work of the process goes there."""
    monkeypatch.setattr(works, "app_engine", lambda: app_engine)
    yield app_engine
    # Twenty times faster than a fresh database for each test; the lock time-out names a test that left work open.
    with owner_engine.begin() as connection:
        connection.execute(text("; ".join(f'DELETE FROM "{table}"' for table in _CHILDREN_FIRST)))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> clocks.FrozenClock:
    """A clock that stands at Monday 2026-01-05 12:00 UTC until the test moves it; units of work use it."""
    frozen = clocks.FrozenClock(datetime(2026, 1, 5, 12, 0, tzinfo=UTC))
    monkeypatch.setattr(works, "DatabaseClock", lambda session: frozen)
    return frozen


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Store":
    """An empty local object store; ``storage.store()`` is it during the test."""
    from gridline import storage
    from gridline.storage import objects

    one = objects.Store(tmp_path.joinpath("objects").as_uri())
    monkeypatch.setattr(storage, "store", lambda: one)
    return one


@pytest.fixture
def work(database: Engine, clock: clocks.FrozenClock) -> Iterator[works.Work]:
    """An open unit of work on the test's database, committed when the test ends well."""
    with works.unit_of_work() as one:
        yield one


@pytest.fixture(scope="session")
def stack() -> Iterator["Stack"]:
    """The whole real stack with both packaged models qualified, started once for all tests that ask for it."""
    from tests.stack import running_stack

    with running_stack() as one:
        yield one
