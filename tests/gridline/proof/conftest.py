"""A platform that keeps all its promises, for tests to break."""

import pytest
from sqlalchemy import Engine

from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.db.work import unit_of_work
from gridline.ledger import posting
from gridline.storage.objects import Store
from tests.gridline.batches.bench import CREDIT
from tests.gridline.proof.sound import SoundBench


@pytest.fixture
def sound(database: Engine, clock: FrozenClock, store: Store) -> SoundBench:
    """An account with ten credits and a batch of each kind."""
    with unit_of_work() as work:
        account = accounts.open_account(work, "tester")
        posting.grant(work, account.id, 10 * CREDIT, actor="operator", why="test", key="first")
    bench = SoundBench(clock, store, account.id)
    bench.everything()
    return bench
