"""A pepper for token hashes, and an account."""

from dataclasses import replace

import pytest
from sqlalchemy import Engine

from gridline.clock import FrozenClock
from gridline.customers import accounts, tokens
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
