"""The yard that tests of capacity work on."""

import pytest
from sqlalchemy import Engine

from gridline.clock import FrozenClock
from gridline.storage.objects import Store
from tests.gridline.capacity.yard import Yard


@pytest.fixture
def yard(database: Engine, clock: FrozenClock, store: Store) -> Yard:
    """A pool of one GPU."""
    yard = Yard(clock, store)
    yard.gpus(1)
    return yard
