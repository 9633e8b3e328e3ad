"""A thousand hostile files through the real validation: each batch ends as documented, and nothing else is harmed."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import Engine, update

from gridline import ids
from gridline.batches import intake, reading, validating
from gridline.batches.repeats import Sent
from gridline.batches.requests import CreateRequest
from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.files.tables import File
from gridline.settings import read_settings
from gridline.storage import layout
from gridline.storage.objects import Store
from tests.gridline.lines.conftest import TEMPLATE, chat_tokenizer, embedding_tokenizer
from tests.hostile.files import CANARY, CHAT_MODEL, EMBEDDING_MODEL, KINDS, HostileFile, hostile_file
from tests.stack import command_of

FILES = 150
ALL_FILES = 1_000
ERROR_KEYS = {"code", "message", "param", "line"}
CODES = {
    "invalid_json_line",
    "invalid_request",
    "invalid_url",
    "duplicate_custom_id",
    "missing_required_parameter",
    "mismatched_model",
    "model_not_found",
    "streaming_unsupported",
}
"""Codes of bad lines, as docs/errors.md lists them."""

pytestmark = pytest.mark.programs


@dataclass(frozen=True)
class Desk:
    """An account whose files are validated in this process."""

    account_id: str
    store: Store

    def validated(self, file: HostileFile) -> tuple[list[int], dict[str, Any]]:
        """The file put into a batch and validated: the partitions to run, and the batch as a poll shows it."""
        file_id = ids.new("file")
        key = layout.file_key(self.account_id, file_id)
        self.store.replace(key, file.data)
        with unit_of_work() as work:
            work.session.add(
                File(
                    id=file_id, account_id=self.account_id, purpose="batch", filename="r.jsonl", bytes=len(file.data),
                    sha256="0", object_key=key, created_at=work.now,
                )
            )  # fmt: skip
        with unit_of_work() as work:
            wanted = CreateRequest(file_id, file.endpoint, "24h", {}, None)
            created = intake.create(
                work, account_id=self.account_id, actor="token:test", request=wanted, sent=Sent()
            )
            batch_id = created.batch.id
        partitions = validating.validate(batch_id)
        assert validating.validate(batch_id) == partitions
        with unit_of_work() as work:
            return partitions, reading.show(work, account_id=self.account_id, batch_id=batch_id)


@pytest.fixture(scope="module")
def models_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both packaged models' names with tiny tokenizers behind them."""
    root = tmp_path_factory.mktemp("models")
    for name, tokenizer in ((CHAT_MODEL, chat_tokenizer()), (EMBEDDING_MODEL, embedding_tokenizer())):
        (root / name).mkdir()
        tokenizer.save(str(root / name / "tokenizer.json"))
    (root / CHAT_MODEL / "chat_template.jinja").write_text(TEMPLATE)
    return root


@pytest.fixture
def both_models(qualified: None, models_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both models are listed, and on this machine."""
    chosen = replace(read_settings({}), models_dir=str(models_folder))
    monkeypatch.setattr(validating, "settings", lambda: chosen)


@pytest.fixture
def desk(database: Engine, both_models: None, clock: FrozenClock, store: Store) -> Desk:
    """An account that may have any number of open batches."""
    with unit_of_work() as work:
        account = accounts.open_account(work, ids.new("account"))
        work.session.execute(update(Account).where(Account.id == account.id).values(open_batches_max=10_000))
    return Desk(account.id, store)


def check(file: HostileFile, partitions: list[int], shown: dict[str, Any]) -> None:
    """What holds for a batch whatever its file was."""
    assert len(json.dumps(shown)) < 100_000
    assert CANARY not in json.dumps(shown)
    if shown["status"] == "validating":
        assert shown["errors"] is None
        assert partitions == list(range(len(partitions)))
        return
    assert (shown["status"], partitions) == ("failed", [])
    assert shown["errors"]["object"] == "list"
    errors = shown["errors"]["data"]
    assert 1 <= len(errors) <= 100
    lines = file.data.count(b"\n") + 1
    for error in errors:
        assert set(error) == ERROR_KEYS
        assert error["code"] in CODES
        assert 0 < len(error["message"]) < 900
        assert error["param"] is None or 0 < len(error["param"]) <= 200
        assert error["line"] is None or 1 <= error["line"] <= lines
    numbers = [error["line"] for error in errors if error["line"] is not None]
    assert numbers == sorted(numbers)


def run(desk: Desk, seeds: range, after_each: Callable[[int], None] = lambda _: None) -> set[str]:
    """Validate the files of these seeds; the statuses met. A failure names the file by seed and kind."""
    statuses = set()
    for seed in seeds:
        file = hostile_file(seed)
        try:
            partitions, shown = desk.validated(file)
            check(file, partitions, shown)
        except Exception as error:
            raise AssertionError(f"the {file} broke a promise") from error
        statuses.add(str(shown["status"]))
        after_each(seed)
    return statuses


def judges() -> list[psutil.Process]:
    """Processes below this one that judge schemas."""
    found = psutil.Process().children(recursive=True)
    return [one for one in found if "schema_trial" in command_of(one)]


def test_hostile_files(desk: Desk) -> None:
    """Files of every kind end validated or failed, with errors as documented and no words of their content."""
    before = judges()
    assert run(desk, range(FILES)) == {"validating", "failed"}
    assert judges() == before


def test_the_same_seed_is_the_same_file() -> None:
    """A file that fails once can be made again from its seed, and each kind comes as often as the others."""
    files = [hostile_file(seed) for seed in range(FILES)]
    assert files == [hostile_file(seed) for seed in range(FILES)]
    assert {file.kind for file in files} == set(KINDS)


@pytest.mark.conformance
@pytest.mark.deep
@pytest.mark.timeout(1_800)
def test_a_thousand_hostile_files(desk: Desk) -> None:
    """The same holds for a thousand, in memory that does not grow with them, with no process left over."""
    process = psutil.Process()
    before, memory = judges(), {}

    def note(seed: int) -> None:
        if seed in {199, ALL_FILES - 1}:
            memory[seed] = process.memory_info().rss >> 20

    run(desk, range(ALL_FILES), note)
    assert judges() == before
    assert memory[ALL_FILES - 1] - memory[199] < 64, memory
