"""Several API processes that share one database and one store, as behind a load balancer."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from gridline.customers import accounts, tokens
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.settings import read_settings
from tests.gridline.batches.conftest import bench
from tests.serving import PEPPER, serving

__all__ = ["bench"]

NODES = 2


@dataclass
class Nodes:
    """A customer without limits worth the name, and a client of each process."""

    account_id: str
    clients: list[httpx.Client]


@pytest.fixture
def nodes(database: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    """Two times ``python -m api.serve``, ready."""
    chosen = replace(read_settings({}), token_pepper=PEPPER)
    monkeypatch.setattr(tokens, "settings", lambda: chosen)
    with ExitStack() as stack:
        urls = [stack.enter_context(serving(database, tmp_path)).url for _ in range(NODES)]
        with unit_of_work() as work:
            account = accounts.open_account(work, "racer")
            _, token = tokens.issue(work, account.id, "racer")
            work.session.get_one(Account, account.id).requests_per_minute_max = 10**6
        headers = {"Authorization": f"Bearer {token}"}
        made = [httpx.Client(base_url=url, headers=headers, timeout=60, verify=False) for url in urls]
        yield Nodes(account.id, [stack.enter_context(client) for client in made])
