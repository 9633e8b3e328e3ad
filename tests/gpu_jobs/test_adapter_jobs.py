"""Jobs whose lines name fine-tuned models, against stub engines behind a real engine keeper with a store."""

import asyncio
import json
import secrets
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gridline.lines.adapters import Adapter
from gridline.lines.exits import JobExit
from gridline.storage import Store
from tests.gpu_jobs.conftest import Partition, start_keeper, until

BY_RANK = [[8, 2]]


@pytest.fixture(scope="module")
def host() -> Iterator[Path]:
    """The state folder of an engine keeper whose store is ours."""
    with tempfile.TemporaryDirectory(prefix="gl-") as folder:
        process = start_keeper(Path(folder))
        yield Path(folder)
        process.terminate()
        process.communicate(timeout=20)


class Host:
    """One model of its own on that host, with adapters in the store."""

    def __init__(self, folder: Path, tmp_path: Path) -> None:
        url = (folder / "objects").as_uri()
        self.store = Store(url)
        self.model = f"stub-{secrets.token_hex(6)}"
        self.journal = tmp_path / "journal.jsonl"
        self._url, self._socket = url, folder / "run" / "engines.sock"

    def adapter(self, weights: bytes = b"good") -> Adapter:
        """A new adapter, in the store."""
        short = secrets.token_hex(6)
        key = f"adapters/acct/{short}"
        self.store.put_once(key, weights + short.encode())
        digest = sha256(weights + short.encode()).hexdigest()
        return Adapter(f"ft:{self.model}:me:{short}", self.model, 8, len(weights), key, digest, {"r": 8})

    def partition(self, *lines: tuple[str, str], adapters: tuple[Adapter, ...] = ()) -> Partition:
        """A partition with a line a (model, text)."""
        spec_model = {
            "id": self.model, "commit": "", "dtype": "float32", "kind": "chat", "context_tokens": 8192,
            "engine_arguments": ["--journal", str(self.journal)], "adapters_by_rank": BY_RANK,
        }  # fmt: skip
        made = Partition(
            self.store, self._url, self._socket, self.journal, f"batch-{secrets.token_hex(6)}",
            spec_model=spec_model, adapters=adapters,
        )  # fmt: skip
        bodies: list[dict[str, Any]] = [
            {"model": model, "messages": [{"role": "user", "content": text}]} for model, text in lines
        ]
        made.write([], bodies=bodies)
        return made


@pytest.fixture
def gpu(host: Path, tmp_path: Path) -> Host:
    """A model that no other test has."""
    return Host(host, tmp_path)


def models(partition: Partition) -> list[tuple[str, str]]:
    """By line: the model that is charged, and the one that the answer names."""
    return [(row.model, json.loads(row.body)["model"]) for row in partition.rows()]


@pytest.mark.thorough
def test_every_line_is_answered_by_the_model_it_names(gpu: Host) -> None:
    """Base and adapters side by side: answer and charge carry the id that the line has."""
    one, two = gpu.adapter(), gpu.adapter()
    named = [gpu.model, one.id, two.id, one.id]
    partition = gpu.partition(*[(name, f"text {n}") for n, name in enumerate(named)], adapters=(one, two))
    assert partition.run() == JobExit.DONE
    assert models(partition) == [(name, name) for name in named]
    assert partition.said() == [f"echo: text {n}" for n in range(4)]
    # Lines, words of the questions, words of the answers: the charge of each is its own.
    assert partition.usage("acct_1") == {gpu.model: [1, 2, 3], one.id: [2, 4, 6], two.id: [1, 2, 3]}
    assert sorted(text for text in partition.sent() if text.startswith("load")) == sorted(
        f"load {adapter.id}" for adapter in (one, two)
    )


@pytest.mark.thorough
def test_an_adapter_that_cannot_be_loaded_fails_its_own_lines(gpu: Host) -> None:
    """One whose weights changed in the store, one that the engine refuses: server_error; neighbours are untouched."""
    changed, bad = gpu.adapter(), gpu.adapter(b"BAD")
    gpu.store.replace(changed.key, b"others")
    first = gpu.partition((changed.id, "a"), (gpu.model, "b"), adapters=(changed,))
    assert first.run() == JobExit.DONE
    assert first.codes() == ["server_error", None]
    assert (first.rows()[0].status_code, first.rows()[0].model) == (500, changed.id)
    assert "could not be loaded" in first.rows()[0].body
    second = gpu.partition((gpu.model, "c"), (bad.id, "d"), adapters=(bad,))
    assert second.run() == JobExit.DONE
    assert second.codes() == [None, "server_error"]


@pytest.mark.thorough
def test_an_engine_without_adapters_is_restarted_when_its_jobs_are_done(gpu: Host) -> None:
    """The base's job runs to its end on the engine that it has, then the adapter's gets one that can load."""
    base = gpu.partition((gpu.model, "!sleep=2 slow"))
    adapter = gpu.adapter()
    tuned = gpu.partition((adapter.id, "tuned"), adapters=(adapter,))

    async def both() -> list[JobExit]:
        slow = asyncio.create_task(base.job().run())
        await asyncio.to_thread(until, lambda: "!sleep=2 slow" in base.sent())
        return list(await asyncio.gather(slow, tuned.job().run()))

    assert asyncio.run(both()) == [JobExit.DONE, JobExit.DONE]
    assert base.said() == ["echo: !sleep=2 slow"]
    assert models(tuned) == [(adapter.id, adapter.id)]
    assert tuned.engines() == 2
    assert gpu.partition((gpu.model, "again")).run() == JobExit.DONE
    assert tuned.engines() == 2


@pytest.mark.thorough
def test_after_an_engines_death_the_adapters_are_loaded_again(gpu: Host) -> None:
    """A new engine has none: the job waits until its own are there, and every line is answered."""
    adapter = gpu.adapter()
    partition = gpu.partition(
        (adapter.id, "!die-once"), *[(adapter.id, f"text {n}") for n in range(5)], adapters=(adapter,)
    )
    assert partition.run() == JobExit.DONE
    assert partition.codes() == [None] * 6
    assert partition.sent().count(f"load {adapter.id}") == 2


@pytest.mark.thorough
def test_jobs_that_need_more_than_fits_go_one_after_another(gpu: Host) -> None:
    """Two jobs with two adapters each, and room for two: both are done, and no line failed."""
    first, second = (gpu.adapter(), gpu.adapter()), (gpu.adapter(), gpu.adapter())
    jobs = [
        gpu.partition(*[(one.id, "!sleep=0.2 x") for one in pair], adapters=pair) for pair in (first, second)
    ]

    async def both() -> list[JobExit]:
        return list(await asyncio.gather(*[one.job().run() for one in jobs]))

    assert asyncio.run(both()) == [JobExit.DONE, JobExit.DONE]
    assert [one.codes() for one in jobs] == [[None, None], [None, None]]
    unloaded = until(lambda: [text for text in jobs[0].sent() if text.startswith("unload")])
    assert len(unloaded) == 2
