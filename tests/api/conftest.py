"""A live server on a free port, customers with tokens, the real SDK and a raw client."""

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread

import httpx
import httpx2
import openai
import pytest
from argon2 import PasswordHasher
from flask import Flask
from sqlalchemy import Engine, create_engine
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import BPE

from api import estimates, rates
from api.app import create_app
from api.serve import make_server
from api.windows import Windows
from gridline.batches import moves, validating
from gridline.batches.states import Status
from gridline.catalog import cards
from gridline.customers import accounts, passwords, tokens
from gridline.db import work as works
from gridline.db.work import unit_of_work
from gridline.ledger import posting
from gridline.operate import postgres, provisioning
from gridline.settings import read_settings
from gridline.storage.objects import Store
from tests.api import described
from tests.serving import close_in_its_loop

HELD_TO_THE_DOCUMENT: dict[str, list[Callable[..., None]]] = {"response": [described.check]}
MODEL = "smollm2-135m-instruct"
CREDIT = 10**9


def line(custom_id: str) -> bytes:
    """One good chat line."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Say ok"}], "max_tokens": 8}
    one = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(one).encode() + b"\n"


LINES = line("a") + line("b")


@dataclass
class Customer:
    """An account with a token, a raw client and the unmodified SDK."""

    account_id: str
    token: str
    http: httpx.Client
    sdk: openai.OpenAI

    def file(self, data: bytes = LINES) -> str:
        """Upload; the file's id."""
        return self.sdk.files.create(file=("r.jsonl", data), purpose="batch").id

    def batch(self, file_id: str | None = None, **more: object) -> dict[str, object]:
        """Create; the batch as raw JSON."""
        wanted = {
            "input_file_id": file_id or self.file(),
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            **more,
        }
        answer = self.http.post("/v1/batches", json=wanted)
        assert answer.status_code == 200, answer.text
        shown: dict[str, object] = answer.json()
        return shown


@contextmanager
def live(app: Flask) -> Iterator[str]:
    """Where a live server answers; its database and store are those of the test that runs."""
    server = make_server(app, "127.0.0.1", 0)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.effective_port}"
    close_in_its_loop(server)
    thread.join(10)
    server.task_dispatcher.shutdown()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the default dialect is spoken."""
    with live(create_app()) as url:
        yield url


@pytest.fixture(scope="session")
def shared_database(server: postgres.Postgres) -> Iterator[Engine]:
    """One database for all tests of the API: they keep apart by account, as customers do."""
    name = f"test_api_{os.getpid()}"
    with server.connect("postgres") as connection:
        provisioning.create_database(connection, name, postgres.OWNER, template="gridline_template")
    engine = create_engine(server.url(postgres.APP, name), pool_size=20)
    with unit_of_work(engine=engine) as work:
        posting.open_platform_books(work)
    yield engine
    engine.dispose()


@pytest.fixture
def database(shared_database: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Every unit of work of the process goes to the shared database."""
    monkeypatch.setattr(works, "app_engine", lambda: shared_database)
    return shared_database


@pytest.fixture(autouse=True)
def pepper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Token hashes are made with a pepper that only the test knows."""
    chosen = replace(read_settings({}), token_pepper="pepper")
    monkeypatch.setattr(tokens, "settings", lambda: chosen)


@pytest.fixture(autouse=True)
def hasher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Password hashes that cost next to nothing."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "hasher", lambda: cheap)


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch) -> Windows:
    """Each test begins with nothing used of any rate."""
    fresh = Windows("memory://")
    monkeypatch.setattr(rates, "windows", lambda: fresh)
    return fresh


def customer(address: str, name: str, scopes: tuple[str, ...] = tokens.SCOPES) -> Iterator[Customer]:
    """Open an account with 10 credits and give it clients."""
    with unit_of_work() as work:
        account = accounts.open_account(work, f"{name} {secrets.token_hex(4)}")
        posting.grant(work, account.id, 10 * CREDIT, actor="operator", why="test", key="first")
        _, token = tokens.issue(work, account.id, name, scopes=scopes)
    headers = {"Authorization": f"Bearer {token}"}
    # Loopback speaks plain HTTP: reading the certificates would cost each test more than all it does.
    with (
        httpx.Client(
            base_url=address, headers=headers, timeout=20, verify=False, event_hooks=HELD_TO_THE_DOCUMENT
        ) as http,
        httpx2.Client(timeout=20, verify=False, event_hooks=HELD_TO_THE_DOCUMENT) as plain,
        openai.OpenAI(
            base_url=f"{address}/openai/v1", api_key=token, max_retries=0, timeout=20, http_client=plain
        ) as sdk,
    ):
        yield Customer(account.id, token, http, sdk)


@pytest.fixture
def ann(address: str, database: Engine, store: Store) -> Iterator[Customer]:
    """A customer."""
    yield from customer(address, "ann")


@pytest.fixture
def bob(address: str, database: Engine, store: Store) -> Iterator[Customer]:
    """Another customer."""
    yield from customer(address, "bob")


@pytest.fixture
def qualified(database: Engine) -> None:
    """The two small models are listed."""
    with unit_of_work() as work:
        for name in (MODEL, "all-minilm-l6-v2"):
            card = cards.catalogue()[name]
            cards.record_qualification(
                work, card, engine_version="1", passed=True, tokens_per_second=100, details={}
            )


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qualified: None) -> None:
    """A prepared chat model with one token a byte, for estimates and validation alike."""
    folder = tmp_path / "models" / MODEL
    folder.mkdir(parents=True)
    alphabet = {char: number for number, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    chosen = replace(read_settings({}), models_dir=str(folder.parent))
    for module in (estimates, validating):
        monkeypatch.setattr(module, "settings", lambda: chosen)


def end(batch_id: object, status: str) -> None:
    """End a batch as its run would."""
    with unit_of_work() as work:
        moves.move(work, moves.locked(work, str(batch_id)), Status(status))
