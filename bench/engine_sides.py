"""The two sides of `bench.engine`: a partition on our warm engine, and vLLM's own `run_batch`, on the same file."""

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from gpu_jobs import process_groups
from gridline.catalog.cards import ModelCard
from gridline.errors import Unavailable
from gridline.operate.engines import ready_engine, wanted
from gridline.operate.stack.process_control import die_with_parent
from gridline.operate.stage import Stage
from gridline.settings import ROOT, Settings, inherited_environment

ENDPOINT = "/v1/chat/completions"
KEEPER_SECONDS_MAX = 30
READING, WRITING = "Reading batch from", "Writing outputs to"
"""What run_batch logs before its first request and after its last."""
CACHE_METRIC = re.compile(r"^vllm:prefix_cache_(queries|hits)_total\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Done:
    """How long a side took for a file, the processors' time in it, and how many of its lines were answered."""

    seconds: float
    cpu_seconds: float
    answered: int


class Ours:
    """The GPU job as a process on one warm engine of the engine keeper, with a state folder of its own."""

    def __init__(self, config: Settings, card: ModelCard, folder: Path) -> None:
        self._config = replace(
            config, state_dir=folder, models_dir=str(config.models_folder), store_url="", engine_socket=""
        )
        self._card = card
        self._stage = Stage(self._config, card, folder / "objects")
        self._environment = inherited_environment() | {
            "GRIDLINE_STATE_DIR": str(folder),
            "GRIDLINE_MODELS_DIR": self._config.models_dir,
            "GRIDLINE_STORE_URL": self._config.objects_url,
            "GRIDLINE_ENGINE_SOCKET": str(self._config.engines_socket),
        }

    @contextmanager
    def engine_keeper(self) -> Iterator[None]:
        """The engine keeper, with the model's engine ready; both ended afterwards."""
        command = [self._config.engine_interpreter, "-m", "gpu_jobs.engine_keeper"]
        with (self._config.state_dir / "engine-keeper.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdout=log, stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509  # it calls one C function
            )  # fmt: skip
        try:
            until = time.monotonic() + KEEPER_SECONDS_MAX
            while not self._config.engines_socket.exists() and time.monotonic() < until:
                time.sleep(0.1)
            ready_engine(self._config, self._card)
            yield
        finally:
            process.terminate()
            process.wait(60)

    def partition(self, data: bytes) -> Done:
        """The whole life of a job over these lines, its own start included.

        Raises:
            Unavailable: the job did not end well.
        """
        order = self._stage.order(data, endpoint=ENDPOINT)
        start, cpu = time.monotonic(), self._cpu_seconds()
        rows = self._stage.run(order)
        seconds, cpu = time.monotonic() - start, self._cpu_seconds() - cpu
        return Done(seconds, cpu, sum(row.delivered for row in rows))

    def _cpu_seconds(self) -> float:
        """Of the engine and of every job that has ended."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        records = (self._config.state_dir / "run" / "engines").glob("*.json")
        engines = sum(group_cpu_seconds(json.loads(one.read_text())["group"]) for one in records)
        return children.ru_utime + children.ru_stime + engines

    def cached_share(self, before: dict[str, float] | None = None) -> dict[str, float]:
        """The engine's counts of prompt tokens asked of its prefix cache and found there, since ``before``."""
        engine = ready_engine(self._config, self._card)
        page = httpx.get(f"{engine.url}/metrics", timeout=10).text
        found = {name: float(value) for name, value in CACHE_METRIC.findall(page)}
        return {name: value - (before or {}).get(name, 0.0) for name, value in found.items()}


def run_batch(config: Settings, card: ModelCard, data: bytes, folder: Path) -> Done:
    """One run of `run_batch`, from reading its input to having the last answer: the start of its engine does not count.

    Raises:
        Unavailable: it failed, or logs other words than these.
    """
    source, target = folder / "run-batch-in.jsonl", folder / "run-batch-out.jsonl"
    source.write_bytes(data)
    target.unlink(missing_ok=True)
    command = [config.engine_interpreter, "-m", "bench.run_batch", json.dumps(wanted(card)), str(source), str(target)]  # fmt: skip
    environment = inherited_environment() | {
        "GRIDLINE_STATE_DIR": str(folder),
        "GRIDLINE_MODELS_DIR": str(config.models_folder),
    }
    seen: dict[str, tuple[float, float]] = {}
    last = ""
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0,
        preexec_fn=die_with_parent,  # noqa: PLW1509  # it calls one C function
    ) as process:  # fmt: skip
        for line in process.stdout or ():
            last = line
            for words in (READING, WRITING):
                if words in line:
                    seen.setdefault(words, (time.monotonic(), group_cpu_seconds(process.pid)))
    if process.returncode or len(seen) < 2:  # noqa: PLR2004 - both moments
        raise Unavailable(f"run_batch ended with {process.returncode}: {last}")
    with target.open() as answers:
        answered = sum(json.loads(line)["error"] is None for line in answers)
    seconds, cpu = (after - before for before, after in zip(seen[READING], seen[WRITING], strict=True))
    return Done(seconds, cpu, answered)


def group_cpu_seconds(group: int) -> float:
    """What the living processes of a group have taken of the processors."""
    ticks = 0
    for pid in process_groups.members(group):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def prepare(config: Settings, card: ModelCard) -> None:
    """Have the model's folder made, if it comes as a package."""
    if card.package:
        command = [config.engine_interpreter, "-m", "gpu_jobs.prepare", "--model", card.id]
        subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
