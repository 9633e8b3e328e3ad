"""An account, and uploads into it."""

from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.db.work import unit_of_work
from gridline.files import receiving
from gridline.files.tables import File
from gridline.profiles.profile import load
from gridline.storage.objects import Store
from tests.gridline.files.in_parts import Sender

LINE = b'{"custom_id":"a"}\n'

Upload = Callable[..., File]


@pytest.fixture
def account_id(database: Engine, clock: FrozenClock) -> str:
    """An open account."""
    with unit_of_work() as work:
        return accounts.open_account(work, "tester").id


@pytest.fixture
def upload(account_id: str, store: Store) -> Upload:
    """Uploads bytes as the API does."""

    def one(data: bytes = LINE, *, seconds: int | None = None, filename: str = "r.jsonl") -> File:
        with receiving.receive(store, account_id, load("gridline")) as incoming:
            incoming.name(filename)
            for start in range(0, len(data), 5):
                incoming.write(data[start : start + 5])
        return receiving.keep(store, incoming, expires_after_seconds=seconds)

    return one


@pytest.fixture
def sender(account_id: str, store: Store) -> Sender:
    """Sends the account's files in parts."""
    return Sender(account_id, store)
