"""The job that brings its own engines: what a container of a cloud's batch runs, as a process."""

import json
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_jobs.engine_start import lines_at_once
from gridline.catalog.cards import catalogue
from gridline.lines.exits import JobExit
from gridline.operate.engines import wanted
from gridline.settings import ROOT, settings
from gridline.storage import Store
from tests.gpu_jobs.conftest import STUB, Partition, environment, until

pytestmark = pytest.mark.programs


@pytest.fixture
def partition(short_path: Path) -> Partition:
    """A partition for which no engine keeper runs."""
    url = (short_path / "objects").as_uri()
    batch_id = f"batch-{secrets.token_hex(6)}"
    return Partition(Store(url), url, short_path / "nobody.sock", short_path / "journal.jsonl", batch_id)


def start(
    partition: Partition, engine: str = STUB, *, python: str = sys.executable, models: Path | None = None
) -> "subprocess.Popen[str]":
    """The job as its container runs it, with a folder of its own for temporary files."""
    scratch = partition.journal.parent / "tmp"
    scratch.mkdir()
    told = environment(
        partition.journal.parent / "state",
        GRIDLINE_STORE_URL=partition.url,
        GRIDLINE_ENGINE_COMMAND=engine,
        GRIDLINE_ENGINE_PYTHON=python,
        GRIDLINE_MODELS_DIR=str(models or ""),
        TMPDIR=str(scratch),
    )
    program = [sys.executable, "-m", "gpu_jobs.alone", partition.order().to_json()]
    with log_of(partition).open("w") as log:
        return subprocess.Popen(program, cwd=ROOT, env=told, stdout=log, stderr=log, text=True)


def log_of(partition: Partition) -> Path:
    """Where the job's log goes: a file, since a pipe would be waited for until the last process has gone."""
    return partition.journal.parent / "log"


def ended(job: "subprocess.Popen[str]", partition: Partition) -> tuple[int, str]:
    """The exit code and the log of a job that must end by itself, and left nothing at that moment."""
    code = job.wait(60)
    log = log_of(partition).read_text()
    assert left_of(partition) == [], log
    return code, log


def left_of(partition: Partition) -> list[str]:
    """Processes that were told of this partition's folder, and files that its job left."""
    folder = str(partition.journal.parent).encode()
    found = [str(one) for one in (partition.journal.parent / "tmp").iterdir()]
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if folder in told:
                found.append(told.decode(errors="replace"))
    return found


def test_it_runs_a_partition_with_engines_of_its_own(partition: Partition) -> None:
    """Every line is answered, the exit code says so, and neither keeper nor engine nor file is left."""
    partition.write([f"line {number}" for number in range(5)])
    job = start(partition)
    code, log = ended(job, partition)
    assert code == JobExit.DONE, log
    assert [row.line for row in partition.rows()] == list(range(5))
    assert partition.engines() == 1
    assert "engine keeper ended" in [json.loads(line)["message"] for line in log.splitlines()]


def test_sigterm_flushes_and_ends_the_engines(partition: Partition) -> None:
    """A reclaimed machine's SIGTERM closes what is finished, and the exit code says that the job was stopped."""
    # One more than may be in flight: all are sent only once the quick one is finished, for the others never are.
    hanging = [f"!hang {number}" for number in range(lines_at_once()[0])]
    partition.write(["a quick line, the longest and so the first", *hanging])
    job = start(partition)
    until(lambda: len(partition.sent()) == len(hanging) + 1)
    job.send_signal(signal.SIGTERM)
    code, log = ended(job, partition)
    assert code == JobExit.STOPPED, log
    assert [row.line for row in partition.rows()] == [0]


def test_an_engine_that_never_starts_is_told(partition: Partition) -> None:
    """Without an engine the job says so by its exit code, which is not one of a partition's attempts."""
    partition.write(["x"])
    job = start(partition, engine=f"{sys.executable} -c exit(1)")
    code, log = ended(job, partition)
    assert code == JobExit.ENGINE_UNHEALTHY, log


def test_a_killed_job_takes_its_engines_along(partition: Partition) -> None:
    """After kill -9 no engine keeps a GPU: the kernel tells the keeper, and the keeper ends them."""
    partition.write(["!hang"])
    job = start(partition)
    until(partition.sent)
    job.kill()
    job.wait()

    def processes_left() -> list[str]:
        return [one for one in left_of(partition) if not one.startswith(str(partition.journal.parent))]

    until(lambda: not processes_left())


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_a_real_engine_answers_it(short_path: Path) -> None:
    """As in its image, the platform's Python runs the job beside a real engine of the engine's environment."""
    model = "all-minilm-l6-v2"
    python, models = settings().engine_interpreter, short_path / "models"
    subprocess.run(
        [python, "-m", "gpu_jobs.prepare", "--model", model],
        cwd=ROOT,
        env=environment(short_path, GRIDLINE_MODELS_DIR=str(models)),
        check=True,
    )
    url, card = (short_path / "objects").as_uri(), catalogue()[model]
    partition = Partition(
        Store(url),
        url,
        short_path / "nobody.sock",
        short_path / "none",
        "batch-real",
        endpoint=card.endpoints[0],
        spec_model=wanted(card),
        line_seconds_max=300,
    )
    partition.write([], bodies=[{"input": "Paris"}, {"input": "tax"}])
    job = start(partition, engine="", python=python, models=models)
    assert job.wait(600) == JobExit.DONE, log_of(partition).read_text()
    assert left_of(partition) == []
    assert [(row.line, row.code) for row in partition.rows()] == [(0, None), (1, None)]
    assert all(len(json.loads(row.body)["data"][0]["embedding"]) == 384 for row in partition.rows())
