"""The keeper's process: elected by an advisory lock, woken by notifications, it calls every duty and stops cleanly.

Two keepers may run at once, also both believing to lead for a moment: every duty is safe to run twice.
"""

import logging
import signal
import threading
from collections.abc import Sequence

import psycopg

from gridline.db.work import CHANNEL
from gridline.keeper.duties import Duty, DutyThread
from gridline.telemetry import metrics

log = logging.getLogger(__name__)

LEADER_LOCK = 0x6B65_6570
TICK_SECONDS = 1.0
STOP_SECONDS = 10.0


class Keeper:
    """Leads while its connection holds the lock; a standby waits for it, asking once a second."""

    def __init__(self, database_url: str, duties: Sequence[Duty]) -> None:
        self._url = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
        self._stopping = threading.Event()
        self._leading = threading.Event()
        self._threads = [DutyThread(duty, self._leading, self._stopping) for duty in duties]

    def stop_on_signals(self) -> None:
        """End cleanly on SIGTERM and SIGINT; call it in the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())

    def stop(self) -> None:
        """Ask the keeper to end; steps under way are finished first."""
        self._stopping.set()

    def run(self) -> None:
        """Lead or wait until stopped; a lost database connection is a lost lead, and is won again."""
        for thread in self._threads:
            thread.start()
        while not self._stopping.is_set():
            try:
                self._serve()
            except psycopg.OperationalError as error:
                log.warning("The keeper has no database (%s); trying again.", type(error).__name__)
                self._stopping.wait(TICK_SECONDS)
            finally:
                self._lead(False)
        for thread in self._threads:
            thread.call()
        late = [thread for thread in self._threads if not thread.join(STOP_SECONDS)]
        if late:
            log.warning("%s duties were still busy when the keeper ended.", len(late))

    def _serve(self) -> None:
        with psycopg.connect(self._url, autocommit=True, connect_timeout=5) as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            while not self._stopping.is_set():
                if not self._leading.is_set() and _elected(connection):
                    self._lead(True)
                # Also how a broken connection is noticed, within a tick.
                for note in connection.notifies(timeout=TICK_SECONDS, stop_after=1):
                    for thread in self._threads:
                        thread.notified(note.payload)

    def _lead(self, leading: bool) -> None:  # noqa: FBT001  # it is the whole message
        if leading == self._leading.is_set():
            return
        metrics.KEEPER_LEADER.set(int(leading))
        log.info("This keeper leads." if leading else "This keeper no longer leads.")
        if leading:
            self._leading.set()
            for thread in self._threads:
                thread.call()
        else:
            self._leading.clear()


def _elected(connection: "psycopg.Connection[tuple[object, ...]]") -> bool:
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", [LEADER_LOCK]).fetchone()
    return row is not None and bool(row[0])
