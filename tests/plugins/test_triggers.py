import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import Engine

from gridline.batches import moves
from gridline.batches.states import Status
from gridline.batches.tables import Partition
from gridline.capacity.allocator import allocate
from gridline.clock import FrozenClock
from gridline.db.work import unit_of_work
from gridline.settings import Settings
from gridline.storage.objects import Store
from tests.gridline.capacity.yard import Yard

if TYPE_CHECKING:
    from gridline_airflow.triggers import GrantTrigger

pytestmark = pytest.mark.airflow

SOON = 15.0
"""Longer than anything here takes, shorter than the poll set below: what arrives was notified."""
NEVER = 60.0


@pytest.fixture
def yard(database: Engine, clock: FrozenClock, store: Store, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """A pool of one GPU, in the database that the stream listens to."""
    url = database.url.render_as_string(hide_password=False)
    monkeypatch.setattr("gridline.settings.settings", lambda: Settings(database_url=url))
    yard = Yard(clock, store)
    yard.gpus(1)
    return yard


@pytest.fixture
def triggers(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with its safety net out of the way."""
    from gridline_airflow import triggers

    monkeypatch.setattr(triggers, "POLL_SECONDS", NEVER)
    monkeypatch.setattr(triggers, "RECONNECT_SECONDS", 0.01)
    return triggers


async def news(trigger: "GrantTrigger", stream: AsyncIterator[Any]) -> str:
    """What the trigger fires with."""
    async for event in trigger.filter_shared_stream(stream):
        return str(event.payload["news"])
    pytest.fail("the trigger ended without an event")


async def fires(trigger: "GrantTrigger", change: Any = None) -> str:
    """What a trigger on a stream of its own fires with, a change being made once it listens."""
    stream = trigger.open_shared_stream({})
    waiting = asyncio.ensure_future(news(trigger, stream))
    try:
        if change is not None:
            await asyncio.sleep(0.3)
            assert not waiting.done()
            await asyncio.to_thread(change)
        return await asyncio.wait_for(waiting, SOON)
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await stream.aclose()


def test_a_grant_that_stands_fires_at_once(yard: Yard, triggers: Any) -> None:
    """The stream carries levels: whoever comes after the notification sees the grant all the same."""
    batch = yard.batch(yard.account("a"), waiting="deferred")
    allocate()
    assert asyncio.run(fires(triggers.GrantTrigger(batch))) == "granted"
    assert asyncio.run(fires(triggers.GrantTrigger(batch, 0))) == "granted"


def test_a_grant_fires_when_it_is_written(yard: Yard, triggers: Any) -> None:
    """A waiting task hears of its grant by notification, not by the poll."""
    batch = yard.batch(yard.account("a"), waiting="deferred")
    assert asyncio.run(fires(triggers.GrantTrigger(batch), allocate)) == "granted"


def test_an_end_fires_too(yard: Yard, triggers: Any) -> None:
    """A cancelled batch, one that is gone, and a partition that is done need wait no longer."""
    batch = yard.batch(yard.account("a"), waiting="deferred")
    assert asyncio.run(fires(triggers.GrantTrigger(batch), lambda: yard.cancel(batch))) == "over"
    assert asyncio.run(fires(triggers.GrantTrigger("batch_gone", 3))) == "over"
    other = yard.batch(yard.account("b"))
    with unit_of_work() as work:
        moves.move(work, moves.locked(work, other), Status.IN_PROGRESS)
        work.session.get_one(Partition, (other, 0)).state = "done"
    assert asyncio.run(fires(triggers.GrantTrigger(other, 0))) == "over"


def test_others_grants_are_not_mine(yard: Yard, triggers: Any) -> None:
    """A batch waits on while only others are granted, and fires when its turn comes."""
    first, second = yard.batch(yard.account("a")), yard.batch(yard.account("b"), waiting="deferred")
    allocate()

    def cancel_first() -> None:
        yard.cancel(first)
        allocate()

    assert asyncio.run(fires(triggers.GrantTrigger(second), cancel_first)) == "granted"


def test_a_lost_connection_is_made_again(
    yard: Yard, triggers: Any, database: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """No error leaves the stream, which would fail every waiting task: it connects again and shows what stands."""
    batch = yard.batch(yard.account("a"), waiting="deferred")

    def break_then_grant() -> None:
        url = database.url.render_as_string(hide_password=False).replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND query LIKE %s AND pid <> pg_backend_pid()",
                ["%AS what%"],
            )
        # The pool's own connections were not the stream's, but they may have run the same query.
        database.dispose()
        allocate()

    assert asyncio.run(fires(triggers.GrantTrigger(batch), break_then_grant)) == "granted"
    assert "The stream of grants broke" in caplog.text


def test_a_newcomer_gets_a_fresh_look(yard: Yard, triggers: Any) -> None:
    """A grant may come between a task's own look and its trigger: joining asks the shared stream to look again."""
    batch = yard.batch(yard.account("a"), waiting="deferred")

    async def join_late() -> str:
        async with aclosing(triggers.GrantTrigger(batch).open_shared_stream({})) as stream:
            await anext(stream)
            pending = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0.2)
            assert not pending.done()

            async def shared() -> AsyncIterator[Any]:
                yield await pending

            return await asyncio.wait_for(news(triggers.GrantTrigger("batch_gone"), shared()), SOON)

    assert asyncio.run(join_late()) == "over"


def test_a_stream_that_is_left_leaves_no_connection(yard: Yard, triggers: Any, database: Engine) -> None:
    """Closing the stream closes its connection at once, whether it was waiting or handing out a snapshot."""

    async def leave() -> None:
        async with aclosing(triggers.GrantTrigger("batch_gone").open_shared_stream({})) as stream:
            await anext(stream)

    async def both() -> None:
        await leave()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(fires(triggers.GrantTrigger(yard.batch(yard.account("a")))), 0.5)
        gc.collect()

    asyncio.run(both())
    database.dispose()
    url = database.url.render_as_string(hide_password=False).replace("+psycopg", "")
    until = time.monotonic() + SOON
    with psycopg.connect(url, autocommit=True) as look:
        while streams(look) and time.monotonic() < until:
            time.sleep(0.05)  # a backend takes a moment to go after its client has hung up
        assert streams(look) == 0


def streams(connection: "psycopg.Connection[tuple[Any, ...]]") -> int:
    """Connections of this database whose last query was the stream's."""
    row = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND query LIKE %s",
        ["%AS what%"],
    ).fetchone()
    return int(row[0]) if row else 0


def test_many_wait_on_one_stream(triggers: Any) -> None:
    """All triggers share one key, and each survives being taken apart and made again by the triggerer."""
    one, two = triggers.GrantTrigger("batch_a"), triggers.GrantTrigger("batch_b", 4)
    assert one.shared_stream_key() == two.shared_stream_key()
    path, arguments = two.serialize()
    assert path == "gridline_airflow.triggers.GrantTrigger"
    again = triggers.GrantTrigger(**arguments)
    assert (again.batch_id, again.partition) == ("batch_b", 4)
