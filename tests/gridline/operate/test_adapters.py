"""The operator's `gridline adapters`: a folder becomes a fine-tuned model of one account, once."""

import json
import re
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from gridline import storage
from gridline.operate.commands import adapters
from gridline.settings import read_settings
from gridline.storage.objects import Store
from tests import loras
from tests.gridline.operate.test_commands import ok, run

BASE = "smollm2-135m-instruct"


@pytest.fixture(autouse=True)
def platform(database: Engine, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database with one account, a store, and a tiny base prepared."""
    settings = read_settings({"GRIDLINE_MODELS_DIR": str(tmp_path / "models")})
    monkeypatch.setattr(adapters, "settings", lambda: settings)
    monkeypatch.setattr(storage, "store", lambda: store)
    folder = tmp_path / "models" / BASE
    folder.mkdir(parents=True)
    folder.joinpath("config.json").write_text(json.dumps(loras.BASE))
    ok("ops", "account", "acme")


def imported(folder: Path, *more: str) -> str:
    """The id that an import prints."""
    shown = ok("adapters", "import", str(folder), "--account", "acme", "--base", BASE, *more)
    found = re.search(r"adapter\t(\S+)", shown)
    assert found
    return found[1]


def test_an_adapter_is_imported_once(tmp_path: Path, store: Store, owner: Engine) -> None:
    """The same folder again is the same id, one object and one audit entry; its weights are the ones given."""
    folder = loras.write(tmp_path / "a", loras.BASE)
    first = imported(folder)
    assert re.fullmatch(rf"ft:{BASE}:o[0-9a-f]{{11}}:[0-9a-f]{{12}}", first)
    assert imported(folder) == first
    (key,) = store.list("adapters/")
    assert store.read(key) == (folder / "adapter_model.safetensors").read_bytes()
    with owner.connect() as connection:
        row = connection.execute(
            text("SELECT actor, details->>'adapter' FROM audit WHERE action = 'adapter.imported'")
        )
        ((actor, adapter),) = row
    assert actor.startswith("operator:")
    assert adapter == first


def test_another_name_account_or_content_is_another_adapter(tmp_path: Path) -> None:
    """An id says whose it is and what is in it, so no two share one."""
    ok("ops", "account", "other")
    one, two = loras.write(tmp_path / "a", loras.BASE), loras.write(tmp_path / "b", loras.BASE, seed=2)
    ids = {
        imported(one),
        imported(two),
        imported(one, "--name", "support"),
        imported(one, "--account", "other"),
    }
    assert len(ids) == 4
    assert any(":support:" in found for found in ids)


def test_a_retired_adapter_stays_retired(tmp_path: Path) -> None:
    """Retiring twice changes nothing, and importing it again is told what to do."""
    folder = loras.write(tmp_path / "a", loras.BASE)
    adapter = imported(folder)
    assert ok("adapters", "retire", adapter) == "retired\tnow\n"
    assert ok("adapters", "retire", adapter) == "retired\tbefore, nothing changed\n"
    assert "retired 20" in ok("adapters", "list", "--account", "acme")
    again = run("adapters", "import", str(folder), "--account", "acme", "--base", BASE)
    assert again.exit_code == 1
    assert "another --name" in again.output
    assert run("adapters", "retire", "ft:x").exit_code == 1


def test_a_qlora_adapter_says_so(tmp_path: Path) -> None:
    """What was trained on a 4-bit base is listed with what that means."""
    imported(loras.write(tmp_path / "a", loras.BASE, base_model_name_or_path="x/y-bnb-4bit"))
    imported(loras.write(tmp_path / "b", loras.BASE, seed=2), "--qlora")
    assert ok("adapters", "list").count("trained on a 4-bit base") == 2


@pytest.mark.parametrize(
    ("base", "why"),
    [
        ("all-minilm-l6-v2", "takes no adapters"),
        ("gpt-oss-20b", "The catalogue has no model"),
        ("qwen3-8b", "must be prepared"),
    ],
)
def test_bases_that_cannot_be_served_are_refused(tmp_path: Path, base: str, why: str) -> None:
    """An embedding model, one that is not here, one whose shapes are not known on this host."""
    folder = loras.write(tmp_path / "a", loras.BASE)
    refused = run("adapters", "import", str(folder), "--account", "acme", "--base", base)
    assert refused.exit_code == 1
    assert why in refused.output


def test_a_pickle_is_never_opened(tmp_path: Path, store: Store) -> None:
    """Weights in another format are named and refused; nothing is stored."""
    folder = loras.write(tmp_path / "a", loras.BASE)
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    refused = run("adapters", "import", str(folder), "--account", "acme", "--base", BASE)
    assert refused.exit_code == 1
    assert "only adapter_model.bin" in refused.output
    assert store.list("adapters/") == []


def test_a_name_is_part_of_an_id(tmp_path: Path) -> None:
    """A name that an id cannot hold is refused with the rule."""
    folder = loras.write(tmp_path / "a", loras.BASE)
    refused = run("adapters", "import", str(folder), "--account", "acme", "--base", BASE, "--name", "A:B")
    assert "1 to 40 lower-case" in refused.output
