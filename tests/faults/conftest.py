"""Several API processes behind a load balancer, and a small platform whose processes die where a test says."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from gridline.batches import validating
from gridline.capacity import pools
from gridline.catalog import cards
from gridline.clock import FrozenClock
from gridline.customers import accounts, tokens
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.ledger import posting
from gridline.operate import postgres
from gridline.settings import read_settings
from gridline.storage import Store
from tests.faults.crash_bench import Bench, Children, children
from tests.faults.small_platform import CREDIT, MODEL, SmallPlatform
from tests.gpu_jobs.conftest import STUB, start_keeper
from tests.gridline.lines.conftest import TEMPLATE, card, chat_tokenizer
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


def prepare_model(folder: Path) -> None:
    """What validation needs of a chat model: a token a byte, and a template."""
    folder.mkdir(parents=True)
    chat_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "</s>"}}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)


@pytest.fixture(scope="session")
def crash_children() -> Iterator[Children]:
    """A process that forks, with a prepared model, and an engine keeper beside it whose engines are stubs."""
    state = Path(tempfile.mkdtemp(prefix="gl-"))
    prepare_model(state / "models" / "tiny-chat")
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


@pytest.fixture
def engine_program() -> str:
    """What the engine keeper starts; a test module may have another."""
    return STUB


@pytest.fixture
def tiny_model(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder with one prepared model, the only one that is offered; its partitions hold whole files."""
    state = Path(tempfile.mkdtemp(prefix="gl-"))
    prepare_model(state / "models" / MODEL)
    # The second file does not exist unless a test makes it: then no engine starts any more.
    arguments = ("--journal", str(tmp_path / "journal.jsonl"), "--refuse-while", str(tmp_path / "refuse"))
    model = card(MODEL, partition_tokens=10**9, engine_arguments=arguments)
    chosen = replace(read_settings({}), models_dir=str(state / "models"))
    monkeypatch.setattr(validating, "settings", lambda: chosen)
    monkeypatch.setattr(cards, "listed", lambda work: [model])
    yield state
    shutil.rmtree(state, ignore_errors=True)


@pytest.fixture
def stub_keeper(tiny_model: Path, engine_program: str) -> "Iterator[subprocess.Popen[str]]":
    """An engine keeper in that folder."""
    keeper = start_keeper(tiny_model, GRIDLINE_ENGINE_COMMAND=engine_program)
    yield keeper
    keeper.terminate()
    keeper.communicate(timeout=30)


@pytest.fixture
def small_platform(
    database: Engine,
    clock: FrozenClock,
    tmp_path: Path,
    tiny_model: Path,
    stub_keeper: "subprocess.Popen[str]",
) -> Iterator[SmallPlatform]:
    """A platform whose jobs and engines are processes."""
    # A job's process keeps its deadline by the real clock.
    clock.moment = datetime.now(UTC)
    with unit_of_work() as work:
        posting.open_platform_books(work)
        pools.seed(work, '[{"name": "local", "gpus": 4, "models": ["*"], "datacenter": false}]')
        account_id = accounts.open_account(work, "ann").id
        posting.grant(work, account_id, 10 * CREDIT, actor="operator", why="test", key="first")
    one = SmallPlatform(clock, tmp_path, tiny_model, account_id)
    yield one
    one.end()
