"""One shared stream that tells every waiting task of its grant: LISTEN on one connection, a slow poll as safety net.

It carries levels, never edges: each message is the whole snapshot of live grants, so a late joiner, a restarted
triggerer or a lost notification costs at most one poll. It knows no rules: what is granted is the domain's to say.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any, ClassVar

from airflow.triggers.base import BaseEventTrigger, TriggerEvent  # noqa: TID253  # an Airflow room

log = logging.getLogger(__name__)

POLL_SECONDS = 5.0
"""The safety net: a notification that was lost is made up for within this time."""
RECONNECT_SECONDS = 1.0


class Snapshot:
    """What stands at one moment, as rows of (batch, partition, what): see ``gridline.capacity.waiting``."""

    def __init__(self, rows: Iterable[tuple[str, int | None, str]]) -> None:
        self._partitions: dict[tuple[str, int], str] = {}
        self._open: set[str] = set()
        self._granted: set[str] = set()
        for batch_id, partition, what in rows:
            if partition is None:
                self._open.add(batch_id)
                continue
            self._partitions[batch_id, partition] = what
            if what == "granted":
                self._granted.add(batch_id)

    def news_for(self, batch_id: str, partition: int | None) -> str | None:
        """``granted`` or ``over`` for whoever waits for this batch (partition None) or partition; None: wait on."""
        if batch_id not in self._open:
            return "over"
        if partition is None:
            return "granted" if batch_id in self._granted else None
        return self._partitions.get((batch_id, partition))


class GrantTrigger(BaseEventTrigger):
    """Fires once its batch (or one partition of it) has a grant, or need not wait any more."""

    _newcomer: ClassVar[asyncio.Event | None] = None

    def __init__(self, batch_id: str, partition: int | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.batch_id = batch_id
        self.partition = partition

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes this trigger again."""
        return (
            "gridline_airflow.triggers.GrantTrigger",
            {"batch_id": self.batch_id, "partition": self.partition},
        )

    def shared_stream_key(self) -> tuple[str]:
        """One stream for every waiting task of a triggerer."""
        return ("gridline-grants",)

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncGenerator[Snapshot, None]:  # noqa: ARG003  # Airflow's signature
        """Snapshots for ever. An error here would fail every waiting task, so none leaves: it connects again."""
        cls._newcomer = asyncio.Event()
        while True:
            try:
                # Closed with this stream, not by the garbage collector: it holds a connection.
                async with aclosing(cls._snapshots(cls._newcomer)) as snapshots:
                    async for snapshot in snapshots:
                        yield snapshot
            except Exception:
                log.exception("The stream of grants broke; connecting again in %s s.", RECONNECT_SECONDS)
            await asyncio.sleep(RECONNECT_SECONDS)

    @staticmethod
    async def _snapshots(newcomer: asyncio.Event) -> AsyncGenerator[Snapshot, None]:
        """A snapshot at once, then after each notification, each newcomer, and each poll's time."""
        import psycopg

        from gridline.capacity.waiting import SNAPSHOT_SQL
        from gridline.db.work import CHANNEL
        from gridline.settings import settings

        url = settings().app_database_url.replace("postgresql+psycopg://", "postgresql://", 1)
        loop = asyncio.get_running_loop()
        async with await psycopg.AsyncConnection.connect(
            url, autocommit=True, connect_timeout=5
        ) as connection:
            connection.add_notify_handler(lambda _: newcomer.set())
            await connection.execute(f"LISTEN {CHANNEL}")
            while True:
                # Cleared before looking: what is notified while the query runs makes it look again.
                newcomer.clear()
                cursor = await connection.execute(SNAPSHOT_SQL)
                yield Snapshot(await cursor.fetchall())
                # psycopg watches the socket only while a query runs; in between a notification is for us to see.
                loop.add_reader(connection.fileno(), newcomer.set)
                try:
                    await asyncio.wait_for(newcomer.wait(), POLL_SECONDS)
                except TimeoutError:
                    log.debug("No notification for %s s: looking anyway.", POLL_SECONDS)
                finally:
                    loop.remove_reader(connection.fileno())

    async def filter_shared_stream(self, stream: AsyncIterator[Snapshot]) -> AsyncIterator[TriggerEvent]:
        """This trigger's one event, from the first snapshot that has news for it."""
        if GrantTrigger._newcomer is not None:
            # A grant may have come between the task's own look and this moment: ask for a fresh snapshot.
            GrantTrigger._newcomer.set()
        async for snapshot in stream:
            news = snapshot.news_for(self.batch_id, self.partition)
            if news is not None:
                yield TriggerEvent(  # type: ignore[no-untyped-call]
                    {"batch_id": self.batch_id, "partition": self.partition, "news": news}
                )
                return

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """The same on a private stream: for ``dag.test()``, and where streams cannot be shared."""
        async with aclosing(self.open_shared_stream(self.serialize()[1])) as stream:
            async for event in self.filter_shared_stream(stream):
                yield event
