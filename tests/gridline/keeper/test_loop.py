import threading
from collections.abc import Callable
from typing import Self

import psycopg
import pytest
from sqlalchemy import Engine

from gridline.db.work import unit_of_work
from gridline.errors import Unavailable
from gridline.keeper import loop
from gridline.keeper.duties import Duty, DutyThread
from gridline.keeper.loop import Keeper

pytestmark = pytest.mark.programs

SOON = 20.0
"""Longer than anything here takes; a test that passes never waits for it."""


def noted(steps: list[str], name: str, event: threading.Event) -> Callable[[], None]:
    """A step that leaves its name and tells that it ran."""

    def step() -> None:
        steps.append(name)
        event.set()

    return step


def url(database: Engine) -> str:
    return database.url.render_as_string(hide_password=False)


class Running:
    """A keeper in a thread of its own, stopped at the end."""

    def __init__(self, database: Engine, *duties: Duty) -> None:
        self.keeper = Keeper(url(database), duties)
        self.thread = threading.Thread(target=self.keeper.run)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.keeper.stop()
        self.thread.join(SOON)
        assert not self.thread.is_alive()


def test_a_notification_wakes_the_duty_it_concerns(database: Engine) -> None:
    """A duty that would come by itself in an hour comes at once when its topic is notified, others do not."""
    woken, started = threading.Event(), threading.Event()
    steps: list[str] = []

    def step() -> None:
        steps.append("step")
        (woken if started.is_set() else started).set()

    other: list[str] = []
    first = threading.Event()
    duties = (
        Duty("a", step, 3600, frozenset({"runs"})),
        Duty("b", noted(other, "step", first), 3600, frozenset({"credits"})),
    )
    with Running(database, *duties):
        assert started.wait(SOON)
        assert first.wait(SOON)
        with unit_of_work() as work:
            work.notify("runs")
        assert woken.wait(SOON)
    assert (len(steps), len(other)) == (2, 1)


@pytest.mark.parametrize("error", [ValueError("broken"), Unavailable("away")])
def test_a_duty_that_fails_is_tried_again_and_stops_no_other(error: Exception) -> None:
    """Whatever a step raises ends that step only."""
    leading, stopping, again = threading.Event(), threading.Event(), threading.Event()
    leading.set()
    tries: list[int] = []

    def fail() -> None:
        tries.append(1)
        if len(tries) == 3:
            again.set()
        raise error

    thread = DutyThread(Duty("fails", fail, 0.001), leading, stopping)
    thread.start()
    assert again.wait(SOON)
    stopping.set()
    thread.call()
    assert thread.join(SOON)


def test_one_keeper_leads(database: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second keeper does nothing while the first leads, and takes over when it ends."""
    led: list[str] = []
    first, second = threading.Event(), threading.Event()

    monkeypatch.setattr(loop, "TICK_SECONDS", 0.1)
    with Running(database, Duty("first", noted(led, "first", first), 0.05)) as one:
        assert first.wait(SOON)
        with Running(database, Duty("second", noted(led, "second", second), 0.05)):
            # Several of its ticks: it has asked for the lock and not got it.
            assert not second.wait(0.8)
            one.keeper.stop()
            assert second.wait(SOON)
    assert led.index("second") > 0


def test_a_lost_connection_is_made_again(database: Engine, owner: Engine, server: object) -> None:
    """When the database ends the keeper's connection it is elected again on a new one."""
    steps = threading.Semaphore(0)
    with Running(database, Duty("a", steps.release, 3600)):
        assert steps.acquire(timeout=SOON)
        with psycopg.connect(url(database).replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s",
                [loop.LEADER_LOCK],
            )
        # Leading again calls every duty.
        assert steps.acquire(timeout=SOON)
