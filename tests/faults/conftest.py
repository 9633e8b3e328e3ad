"""Several API processes behind a load balancer, and a small platform whose processes die where a test says."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from gridline.clock import FrozenClock
from gridline.customers import accounts, tokens
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.operate import postgres
from gridline.settings import read_settings
from tests.faults.crash_bench import Bench, Children, children
from tests.gpu_jobs.conftest import start_keeper
from tests.gridline.lines.conftest import TEMPLATE, chat_tokenizer
from tests.serving import PEPPER, serving

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


@pytest.fixture(scope="session")
def crash_children() -> Iterator[Children]:
    """A process that forks, with a prepared model, and an engine keeper beside it whose engines are stubs."""
    state = Path(tempfile.mkdtemp(prefix="gl-"))
    model = state / "models" / "tiny-chat"
    model.mkdir(parents=True)
    chat_tokenizer().save(str(model / "tokenizer.json"))
    (model / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "</s>"}}))
    (model / "chat_template.jinja").write_text(TEMPLATE)
    engines = start_keeper(state)
    try:
        with children(state, state / "models") as one:
            yield one
    finally:
        engines.terminate()
        engines.communicate(timeout=20)
        shutil.rmtree(state, ignore_errors=True)


@pytest.fixture(scope="session")
def crash_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where worlds are. The engine's journal is one for all tests, as the engine is."""
    return tmp_path_factory.mktemp("crash")


@pytest.fixture
def bench(
    crash_children: Children,
    crash_folder: Path,
    server: postgres.Postgres,
    database: Engine,
    clock: FrozenClock,
) -> Iterator[Bench]:
    """An empty world on an empty database."""
    with server.connect(str(database.url.database)) as superuser:
        one = Bench(crash_children, superuser, database, clock, crash_folder)
        one.clear()
        yield one
        one.clear()
