"""Accounts, files and batches at any stage."""

from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from gridline.batches.tables import Batch
from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.db.work import unit_of_work
from gridline.ledger import posting
from gridline.storage.objects import Store
from tests.gridline.batches.bench import CREDIT, Bench


@pytest.fixture
def bench(database: Engine, clock: FrozenClock, store: Store) -> Bench:
    """An account with 10 credits, and the means to make its batches."""
    with unit_of_work() as work:
        posting.open_platform_books(work)
        account = accounts.open_account(work, "tester")
        posting.grant(work, account.id, 10 * CREDIT, actor="operator", why="test", key="first")
    return Bench(clock, store, account.id)


@pytest.fixture
def row(database: Engine) -> Callable[[str], Batch]:
    """Reads a batch's row as it is committed."""

    def read(batch_id: str) -> Batch:
        with unit_of_work() as work:
            return work.session.get_one(Batch, batch_id)

    return read
