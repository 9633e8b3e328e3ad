"""Batches that can end, webhooks that hear of it, and a receiver."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from sqlalchemy import Engine, select

from gridline.batches import moves
from gridline.batches.states import Status
from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.db.work import unit_of_work
from gridline.ledger import posting
from gridline.notices import delivering, webhooks
from gridline.notices.delivering import Sender
from gridline.notices.outbox import ENDS
from gridline.notices.requests import WebhookRequest
from gridline.notices.tables import Delivery, Webhook
from gridline.storage.objects import Store
from tests.gridline.batches.bench import CREDIT, Bench
from tests.gridline.notices.receiver import Receiver, receiving

LOOPBACK = "127.0.0.0/8"


@dataclass
class Notices:
    """What tests of webhooks do."""

    bench: Bench
    sender: Sender = Sender(LOOPBACK)

    @property
    def clock(self) -> FrozenClock:
        """The test's clock."""
        return self.bench.clock

    def webhook(self, url: str, *, events: tuple[str, ...] = ENDS, account_id: str = "") -> Webhook:
        """A webhook of the account."""
        with unit_of_work() as work:
            wanted = WebhookRequest(url, events)
            return webhooks.create(work, account_id or self.bench.account_id, wanted, actor="token:t")

    def ended(self, status: Status = Status.FAILED) -> str:
        """A batch that ended; its id."""
        batch = self.bench.create()
        with unit_of_work() as work:
            moves.move(work, moves.locked(work, batch.id), status)
        return batch.id

    def deliver(self) -> int:
        """A step of the keeper."""
        return delivering.deliver(self.sender)

    def deliveries(self) -> list[Delivery]:
        """All of them, oldest first."""
        with unit_of_work() as work:
            return list(work.session.scalars(select(Delivery).order_by(Delivery.sequence)))

    def shown(self, webhook: Webhook) -> Webhook:
        """The webhook as it stands now."""
        with unit_of_work() as work:
            return webhooks.get(work, webhook.account_id, webhook.id)


@pytest.fixture
def notices(database: Engine, clock: FrozenClock, store: Store) -> Notices:
    """An account with credit."""
    with unit_of_work() as work:
        posting.open_platform_books(work)
        account = accounts.open_account(work, "tester")
        account.open_batches_max = 1_000
        posting.grant(work, account.id, 10 * CREDIT, actor="operator", why="test", key="first")
    return Notices(Bench(clock, store, account.id))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on loopback that takes everything until the test says otherwise."""
    with receiving() as one:
        yield one
