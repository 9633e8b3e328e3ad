"""Webhooks that change while others use them: no limit is passed, and the end of a batch never fails for them."""

import threading
import time

import pytest
from sqlalchemy import text

from gridline import limits
from gridline.batches import moves
from gridline.batches.states import Status
from gridline.db.work import unit_of_work
from gridline.errors import LimitExceeded
from gridline.notices import outbox, parcels, webhooks
from tests.gridline.notices.conftest import Notices

URL = "https://example.com/hooks"


def test_creates_at_once_stop_at_the_limit(notices: Notices) -> None:
    """Of twenty at the same moment ten are made."""
    start = threading.Barrier(20)
    refused: list[LimitExceeded] = []

    def create() -> None:
        start.wait()
        try:
            notices.webhook(URL)
        except LimitExceeded as error:
            refused.append(error)

    threads = [threading.Thread(target=create) for _ in range(20)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    with unit_of_work() as work:
        assert len(webhooks.every(work, notices.bench.account_id)) == limits.WEBHOOKS_PER_ACCOUNT_MAX
    assert len(refused) == 10
    assert refused[0].limit == {"name": "webhooks", "limit": 10, "current": 10, "unit": "webhooks"}


def test_a_batch_ends_while_its_webhook_is_deleted(notices: Notices) -> None:
    """The end waits for the deletion and leaves that webhook out: it neither fails nor owes anybody anything."""
    webhook = notices.webhook(URL)
    notices.webhook(f"{URL}/other")
    batch = notices.bench.create()
    ended = threading.Event()

    def end() -> None:
        with unit_of_work() as work:
            moves.move(work, moves.locked(work, batch.id), Status.FAILED)
        ended.set()

    thread = threading.Thread(target=end)
    with unit_of_work() as work:
        webhooks.delete(work, webhooks.get(work, webhook.account_id, webhook.id, lock=True), actor="token:t")
        work.session.flush()
        thread.start()
        while not work.session.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")):
            time.sleep(0.01)
        assert not ended.is_set()
    thread.join(20)
    assert ended.is_set()
    assert [one.webhook_id for one in notices.deliveries()] != [webhook.id]
    assert len(notices.deliveries()) == 1


def test_the_same_end_is_owed_once(notices: Notices) -> None:
    """Written again it is the same event, with the same id, and nothing is added."""
    notices.webhook(URL)
    batch_id = notices.ended()
    with unit_of_work() as work:
        outbox.batch_ended(work, batch_id, account_id=notices.bench.account_id, status="failed")
    assert len(notices.deliveries()) == 1


@pytest.mark.parametrize("due", [0, 3, 40])
def test_an_account_has_four_attempts_at_once(notices: Notices, due: int) -> None:
    """However many are due and however often is asked: the others wait until one of the four is noted."""
    notices.webhook(URL)
    for _ in range(due):
        notices.ended()
    made = []
    for _ in range(3):
        with unit_of_work() as work:
            made += parcels.claim(work, most=3)
    assert len(made) == min(due, parcels.AT_ONCE_PER_ACCOUNT)
    if due == 40:
        with unit_of_work() as work:
            parcels.note(work, made[0], parcels.Outcome(status=200))
        with unit_of_work() as work:
            assert len(parcels.claim(work, most=3)) == 1
