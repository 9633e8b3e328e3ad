"""A pepper for token hashes, and an account."""

from dataclasses import replace

import pytest
from argon2 import PasswordHasher
from sqlalchemy import Engine

from gridline.clock import FrozenClock
from gridline.customers import accounts, passwords, tokens
from gridline.db.work import unit_of_work
from gridline.settings import read_settings


@pytest.fixture(autouse=True)
def pepper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Token hashes are made with a pepper that only the test knows."""
    chosen = replace(read_settings({}), token_pepper="pepper")
    monkeypatch.setattr(tokens, "settings", lambda: chosen)


@pytest.fixture
def account_id(database: Engine, clock: FrozenClock) -> str:
    """An open account."""
    with unit_of_work() as work:
        return accounts.open_account(work, "tester").id


@pytest.fixture(autouse=True)
def hasher(monkeypatch: pytest.MonkeyPatch) -> PasswordHasher:
    """Password hashes that cost next to nothing; what real ones cost is a test of its own."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "hasher", lambda: cheap)
    return cheap
