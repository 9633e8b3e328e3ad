"""Fine-tuned models on the real engine: two accounts at once, each with an adapter of its own."""

import json
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gridline import ids
from gridline.catalog.cards import catalogue
from gridline.lines.adapters import Adapter
from gridline.lines.exits import JobExit
from gridline.operate.engines import wanted
from gridline.settings import ROOT, settings
from gridline.storage import Store, layout
from tests import loras
from tests.gpu_jobs.conftest import Partition, environment, until

MODEL = "smollm2-135m-instruct"
QUESTIONS = ("What is the capital of France?", "Name a colour.")
ACCOUNTS = (ids.derived("account", "one"), ids.derived("account", "two"))


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_each_accounts_adapter_answers_its_own_lines(short_path: Path) -> None:
    """With equal custom_ids, at once on one engine: answers and charges go with their own adapter, and are not the base's."""
    python, models = settings().engine_interpreter, str(settings().models_folder)
    env = environment(short_path, GRIDLINE_MODELS_DIR=models, GRIDLINE_ENGINE_COMMAND="")
    subprocess.run([python, "-m", "gpu_jobs.prepare", "--model", MODEL], cwd=ROOT, env=env, check=True)
    partitions = [_partition(short_path, number) for number in range(len(ACCOUNTS))]
    with (short_path / "keeper.log").open("w") as log:
        keeper = subprocess.Popen([python, "-m", "gpu_jobs.engine_keeper"], cwd=ROOT, env=env, stdout=log)
    try:
        until((short_path / "run" / "engines.sock").exists)
        jobs = [_started(python, one) for one in partitions]
        for job in jobs:
            said, _ = job.communicate()
            assert job.returncode == JobExit.DONE, said
    finally:
        keeper.terminate()
        keeper.wait(timeout=30)
    answers = [_answers(one) for one in partitions]
    bases, tuned = [set(one.values()) & {one[MODEL]} for one in answers], []
    for number, partition in enumerate(partitions):
        adapter = partition.adapters[0].id
        tuned.append(answers[number][adapter])
        assert set(answers[number]) == {MODEL, adapter}
        usage = partition.usage(ACCOUNTS[number])
        assert {name: lines for name, (lines, *_) in usage.items()} == {MODEL: 2, adapter: 2}
        assert all(given > 0 and written > 0 for _, given, written in usage.values())
    assert bases[0] == bases[1]
    assert len({*tuned, *bases[0]}) == 3


def _partition(state_dir: Path, number: int) -> Partition:
    """One account's: each question to the base and to its adapter."""
    store = Store((state_dir / "objects").as_uri())
    base = json.loads((settings().models_folder / MODEL / "config.json").read_text())
    weights = loras.safetensors(loras.tensors(base, rank=8, seed=number))
    key = layout.adapter_key(ACCOUNTS[number], f"{number}" * 12)
    store.put_once(key, weights)
    digest, config = sha256(weights).hexdigest(), loras.config(8)
    adapter = Adapter(f"ft:{MODEL}:me:{number}", MODEL, 8, len(weights), key, digest, config)
    partition = Partition(
        store,
        store.url,
        state_dir / "run" / "engines.sock",
        state_dir / "none",
        ids.derived("batch", f"adapters-{number}"),
        spec_model=wanted(catalogue()[MODEL]),
        adapters=(adapter,),
        line_seconds_max=600,
    )
    bodies: list[dict[str, Any]] = [
        {
            "model": model,
            "messages": [{"role": "user", "content": question}],
            "max_tokens": 8,
            "temperature": 0,
        }
        for question in QUESTIONS
        for model in (MODEL, adapter.id)
    ]
    partition.write([], bodies=bodies)
    return partition


def _started(python: str, partition: Partition) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [python, "-m", "gpu_jobs.run", partition.order().to_json()],
        cwd=ROOT,
        env=partition.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _answers(partition: Partition) -> dict[str, tuple[str, ...]]:
    """By the model that an answer names, which is the one charged: what it said to each question."""
    said: dict[str, tuple[str, ...]] = {}
    for row in partition.rows():
        assert row.code is None, row.body
        body = json.loads(row.body)
        assert body["model"] == row.model
        said[row.model] = (*said.get(row.model, ()), body["choices"][0]["message"]["content"])
    return said
