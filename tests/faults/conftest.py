"""Several API processes that share one database and one store, as behind a load balancer."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from gridline.customers import accounts, tokens
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.settings import read_settings
from tests.api.test_serve import ROOT, until
from tests.conftest import free_port

NODES = 2
PEPPER = "pepper"


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
        urls = [stack.enter_context(_serving(database, tmp_path)) for _ in range(NODES)]
        with unit_of_work() as work:
            account = accounts.open_account(work, "racer")
            _, token = tokens.issue(work, account.id, "racer")
            work.session.get_one(Account, account.id).requests_per_minute_max = 10**6
        headers = {"Authorization": f"Bearer {token}"}
        made = [httpx.Client(base_url=url, headers=headers, timeout=60, verify=False) for url in urls]
        yield Nodes(account.id, [stack.enter_context(client) for client in made])


@contextmanager
def _serving(database: Engine, folder: Path) -> Iterator[str]:
    """One process; its address once it is ready."""
    port = free_port()
    environ = {
        "PATH": os.environ["PATH"],
        "GRIDLINE_DATABASE_URL": database.url.render_as_string(hide_password=False),
        "GRIDLINE_STORE_URL": (folder / "objects").as_uri(),
        "GRIDLINE_STATE_DIR": str(folder),
        "GRIDLINE_TOKEN_PEPPER": PEPPER,
        "GRIDLINE_API_PORT": str(port),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "api.serve"], cwd=ROOT, env=environ, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: httpx.get(f"{url}/readyz", verify=False).status_code == 200)
        yield url
    finally:
        process.kill()
        process.wait()
