"""Whatever may help a waiting batch wakes the duty that looks at it: nobody waits for an interval."""

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from sqlalchemy import Engine

from gridline.batches import moves
from gridline.batches.states import Status
from gridline.capacity import budget, gpu_time, operator_hold
from gridline.capacity.allocator import allocate
from gridline.db.work import CHANNEL, Work, unit_of_work
from gridline.keeper.__main__ import duties
from gridline.ledger import posting
from gridline.lines.exits import JobExit
from gridline.notices import messages, webhooks
from gridline.notices.outbox import ENDS
from gridline.notices.requests import MessageRequest, WebhookRequest
from gridline.operate import accounts
from tests.gridline.capacity.yard import Yard
from tests.gridline.keeper.fake_airflow import FakeAirflow

WAIT_SECONDS = 5.0


@pytest.fixture
def heard(database: Engine) -> Iterator[Callable[[], set[str]]]:
    """The topics that were notified since the last call."""
    url = database.url.render_as_string(hide_password=False).replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"LISTEN {CHANNEL}")

        def topics() -> set[str]:
            # A mark of our own says that everything before it has arrived.
            connection.execute("SELECT pg_notify(%s, 'mark')", [CHANNEL])
            found: set[str] = set()
            end = time.monotonic() + WAIT_SECONDS
            while "mark" not in found and time.monotonic() < end:
                found |= {one.payload for one in connection.notifies(timeout=0.1, stop_after=1)}
            return found - {"mark"}

        yield topics


def held(work: Work, batch_id: str, _account: str) -> None:
    operator_hold.hold(work, batch_id, note="A look", actor="operator:ada")


def released(work: Work, batch_id: str, _account: str) -> None:
    operator_hold.release(work, batch_id, actor="operator:ada")


def topped_up(work: Work, _batch: str, account: str) -> None:
    posting.grant(work, account, 1, actor="operator", why="top-up", key="more")


def limits_raised(work: Work, _batch: str, account: str) -> None:
    accounts.set_limits(work, account, accounts.Limits(leases=9), actor="operator:ada", why="test")


def platform_limit_raised(work: Work, _batch: str, _account: str) -> None:
    budget.set_limit(work, 10**12, actor="operator:ada", why="test")


def gpu_time_changed(work: Work, _batch: str, account: str) -> None:
    gpu_time.set_budget(work, account, 60, actor="operator:ada", why="test")


def ended(work: Work, batch_id: str, _account: str) -> None:
    moves.move(work, moves.locked(work, batch_id), Status.FAILED)


def ended_with_a_webhook(work: Work, batch_id: str, account: str) -> None:
    webhooks.create(work, account, WebhookRequest("https://example.com/", ENDS), actor="token:t")
    ended(work, batch_id, account)


def message_written(work: Work, batch_id: str, account: str) -> None:
    messages.write(work, account, MessageRequest("Why?", batch_id), actor="token:t")


def cancelled(work: Work, batch_id: str, _account: str) -> None:
    moves.move(work, moves.locked(work, batch_id), Status.CANCELLING)


@pytest.mark.parametrize(
    ("event", "topics"),
    [
        (released, {"capacity", "credits", "batches"}),
        (topped_up, {"credits"}),
        (limits_raised, {"capacity", "credits"}),
        (platform_limit_raised, {"capacity"}),
        (gpu_time_changed, {"batches"}),
        (ended, {"batches", "capacity", "credits"}),
        (ended_with_a_webhook, {"batches", "capacity", "credits", "webhooks"}),
        (message_written, {"messages"}),
        (cancelled, {"batches"}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_helps_wakes_whom_it_helps(
    yard: Yard,
    heard: Callable[[], set[str]],
    event: Callable[[Work, str, str], None],
    topics: set[str],
) -> None:
    """Each event is heard as soon as it is committed, by the topics that its duties listen to."""
    account = yard.account("a")
    batch = yard.batch(account)
    if event is released:
        with unit_of_work() as work:
            held(work, batch, account)
    heard()
    with unit_of_work() as work:
        event(work, batch, account)
    assert heard() == topics


def test_a_gpu_that_is_free_again_is_heard(yard: Yard, heard: Callable[[], set[str]]) -> None:
    """A lease that was given back, and a pool that grew."""
    batch = yard.batch(yard.account("a"))
    allocate()
    order = yard.begin(batch)
    heard()
    yard.end(batch, order, JobExit.DONE)
    assert "capacity" in heard()
    yard.gpus(2)
    assert heard() == {"capacity"}


def test_every_topic_has_its_duty(fake: FakeAirflow) -> None:
    """The allocator looks at capacity and batches and at least every 2 s (so midnight too), credit at credits."""
    found = {duty.name: duty for duty in duties(fake.client())}
    assert found["allocate"].topics == {"capacity", "batches"}
    assert found["allocate"].every_seconds <= 2
    assert found["credit"].topics == {"credits"}
    assert "batches" in found["deadlines"].topics
    assert found["webhooks"].topics == {"webhooks"}
    assert found["mail"].topics == {"messages"}
