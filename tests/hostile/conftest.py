"""The live server of the API's tests, and a customer whom no rate stops: what is tried here is many requests."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, update

from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.storage.objects import Store
from tests.api.conftest import Customer, address, customer, database, pepper, qualified, shared_database

__all__ = ["address", "database", "pepper", "qualified", "shared_database"]


@pytest.fixture
def mallory(address: str, database: Engine, store: Store) -> Iterator[Customer]:
    """A customer who may send as many requests, and open as many batches, as it takes."""
    for one in customer(address, "mallory"):
        with unit_of_work() as work:
            unbounded = {"requests_per_minute_max": 10_000_000, "open_batches_max": 10_000}
            work.session.execute(update(Account).where(Account.id == one.account_id).values(**unbounded))
        yield one
