"""The yard of capacity's tests and a fake Airflow."""

import pytest
from sqlalchemy import Engine

from gridline.clock import FrozenClock
from gridline.storage.objects import Store
from tests.gridline.capacity.yard import Yard
from tests.gridline.keeper.fake_airflow import FakeAirflow


@pytest.fixture
def yard(database: Engine, clock: FrozenClock, store: Store) -> Yard:
    """A pool of one GPU."""
    yard = Yard(clock, store)
    yard.gpus(1)
    return yard


@pytest.fixture
def fake() -> FakeAirflow:
    """An Airflow without a run."""
    return FakeAirflow()
