"""Adapters on a GPU host: copied once and checked, loaded together for who needs them, never taken from who uses them."""

import os
import threading
import time
from hashlib import sha256
from pathlib import Path

import pytest

from gpu_jobs import adapters as room
from gpu_jobs import staging
from gpu_jobs.adapters import EngineAdapters, LoadFailed, LoadRefused
from gpu_jobs.logs import Log
from gridline.lines.adapters import Adapter
from gridline.storage import ObjectMissing, Store
from tests.gpu_jobs.conftest import until


def adapter(name: str, rank: int = 8, weights: bytes = b"weights") -> Adapter:
    """An adapter of some base."""
    digest = sha256(weights).hexdigest()
    return Adapter(
        f"ft:base:me:{name}", "base", rank, len(weights), f"adapters/a/{name}", digest, {"r": rank}
    )


class Engine:
    """Loads and unloads as told, and remembers; ``gate`` holds every load until it is set."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.errors: dict[str, list[Exception]] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.adapters = EngineAdapters(
            [[8, 2], [64, 1]], load=self._load, unload=self._unload, log=Log("engine-keeper")
        )

    def _load(self, one: Adapter) -> None:
        assert self.gate.wait(10)
        self.did.append(f"+{one.id[-1]}")
        if self.errors.get(one.id):
            raise self.errors[one.id].pop()

    def _unload(self, one: Adapter) -> None:
        self.did.append(f"-{one.id[-1]}")

    def ready(self, claim: str, *wanted: Adapter) -> dict[str, str]:
        """Ask until it is ready; what failed."""
        return dict(until(lambda: (one := self.adapters.ask(claim, wanted)).ready and one).failed)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine with room for two adapters of rank 8, or one of rank 64; claims end quickly."""
    monkeypatch.setattr(room, "CLAIM_SECONDS", 0.3)
    monkeypatch.setattr(room, "TRY_AGAIN_SECONDS", 0.01)
    return Engine()


A, B, C, HIGH = adapter("a"), adapter("b"), adapter("c"), adapter("h", rank=64)


def test_what_is_loaded_is_loaded_once(engine: Engine) -> None:
    """Asking again, or by another job, loads nothing again."""
    assert engine.ready("one", A, B) == {}
    assert engine.ready("two", A) == {}
    assert engine.did == ["+a", "+b"]
    assert engine.adapters.loaded() == [A.id, B.id]


def test_the_longest_unused_makes_room(engine: Engine) -> None:
    """Only as many go as must, and first the one whose use is the longest ago."""
    engine.ready("one", A)
    engine.ready("two", B)
    engine.ready("three", A)
    time.sleep(0.4)
    engine.ready("four", C)
    assert engine.did == ["+a", "+b", "-b", "+c"]
    time.sleep(0.4)
    engine.ready("five", HIGH)
    assert engine.did[4:] == ["-a", "-c", "+h"]


def test_what_is_in_use_stays(engine: Engine) -> None:
    """A job waits for room as long as others ask for theirs, and gets it when they are gone."""
    engine.ready("one", A)
    engine.ready("two", B)
    for _ in range(10):
        time.sleep(0.05)
        assert engine.adapters.ask("one", [A]).ready
        assert engine.adapters.ask("two", [B]).ready
        assert not engine.adapters.ask("three", [C]).ready
    assert "+c" not in engine.did
    engine.ready("three", C)
    assert engine.did[-1] == "+c"


def test_two_jobs_that_need_everything_do_not_wait_for_each_other(engine: Engine) -> None:
    """Each gets all of its adapters or none: the second has nothing until the first is done."""
    engine.gate.clear()
    assert not engine.adapters.ask("one", [A, B]).ready
    assert not engine.adapters.ask("two", [B, C]).ready
    engine.gate.set()
    engine.ready("one", A, B)
    assert not engine.adapters.ask("two", [B, C]).ready
    assert engine.ready("two", B, C) == {}
    assert engine.adapters.loaded() == [B.id, C.id]


def test_a_big_claim_is_not_overtaken(engine: Engine) -> None:
    """Who asked first goes first, even where a later and smaller claim would fit."""
    engine.ready("one", A)
    assert not engine.adapters.ask("big", [B, C]).ready
    for _ in range(4):
        assert engine.adapters.ask("one", [A]).ready
        assert not engine.adapters.ask("big", [B, C]).ready
        assert not engine.adapters.ask("late", [B]).ready
    assert engine.did == ["+a"]


def test_one_that_cannot_be_loaded_holds_up_nobody(engine: Engine) -> None:
    """A refusal is told with its reason, at once; the others of the same job are there."""
    engine.errors[A.id] = [LoadRefused("no")] * 2
    assert engine.ready("one", A, B) == {A.id: "no"}
    assert engine.did.count("+a") == 1
    assert engine.ready("two", A) == {A.id: "no"}
    assert engine.ready("three", A) == {}


def test_what_may_pass_is_tried_again(engine: Engine) -> None:
    """A store or an engine that did not answer is asked again before a job is told."""
    engine.errors[A.id] = [LoadFailed("away")] * 2
    assert engine.ready("one", A) == {}
    engine.errors[B.id] = [LoadFailed("away")] * 3
    assert engine.ready("two", B) == {B.id: "away"}


def test_staging_copies_once_and_checks(tmp_path: Path) -> None:
    """The folder has weights and configuration; made once, it stands without the store."""
    store, root = Store((tmp_path / "objects").as_uri()), tmp_path / "staged"
    store.put_once(A.key, b"weights")
    folder = staging.stage(store, A, root)
    assert (folder / "adapter_model.safetensors").read_bytes() == b"weights"
    assert (folder / "adapter_config.json").read_text() == '{"r": 8}'
    store.delete(A.key)
    assert staging.stage(store, A, root) == folder
    assert [one.name for one in root.iterdir()] == [folder.name]


def test_weights_that_changed_are_never_staged(tmp_path: Path) -> None:
    """Other bytes than those imported, or none, leave nothing behind."""
    store, root = Store((tmp_path / "objects").as_uri()), tmp_path / "staged"
    with pytest.raises(ObjectMissing):
        staging.stage(store, A, root)
    store.put_once(A.key, b"weightz")
    with pytest.raises(staging.StagedWrong):
        staging.stage(store, A, root)
    assert list(root.iterdir()) == []


def test_folders_that_nobody_uses_are_removed(tmp_path: Path) -> None:
    """What was not loaded for long goes when another is staged; what was used stays."""
    store, root = Store((tmp_path / "objects").as_uri()), tmp_path / "staged"
    for one in (A, B):
        store.put_once(one.key, b"weights")
    old = staging.stage(store, A, root)
    os.utime(old, (0, 0))
    assert staging.stage(store, A, root) == old
    os.utime(old, (0, 0))
    other = adapter("b", weights=b"others")
    store.put_once("adapters/a/c", b"others")
    new = staging.stage(store, Adapter(**{**other.as_dict(), "key": "adapters/a/c"}), root)
    assert [one.name for one in root.iterdir()] == [new.name]
