"""The yard of capacity's tests, a bench on it, and a fake Airflow."""

import pytest
from sqlalchemy import Engine

from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.db.work import unit_of_work
from gridline.ledger import posting
from gridline.storage.objects import Store
from tests.gridline.batches.bench import CREDIT, Bench
from tests.gridline.capacity.yard import Yard
from tests.gridline.keeper.fake_airflow import FakeAirflow


@pytest.fixture
def yard(database: Engine, clock: FrozenClock, store: Store) -> Yard:
    """A pool of one GPU."""
    yard = Yard(clock, store)
    yard.gpus(1)
    return yard


@pytest.fixture
def bench(yard: Yard) -> Bench:
    """An account with credit."""
    with unit_of_work() as work:
        account = accounts.open_account(work, "tester")
        posting.grant(work, account.id, 10 * CREDIT, actor="operator", why="test", key="first")
    return Bench(yard.clock, yard.store, account.id)


@pytest.fixture
def fake() -> FakeAirflow:
    """An Airflow without a run."""
    return FakeAirflow()
