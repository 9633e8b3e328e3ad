"""The real engine for tests: an engine keeper on prepared models, and jobs as processes of the engine's environment."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gridline.catalog.cards import catalogue
from gridline.lines.exits import JobExit
from gridline.operate.engines import wanted
from gridline.settings import ROOT, settings
from gridline.storage import Store
from tests.gpu_jobs.conftest import Partition, environment, until


@contextmanager
def real_keeper(state_dir: Path, *models: str) -> Iterator[str]:
    """An engine keeper that starts real engines on these packaged models (all, if none is named); its interpreter."""
    python = settings().engine_interpreter
    env = environment(
        state_dir, GRIDLINE_MODELS_DIR=str(settings().models_folder), GRIDLINE_ENGINE_COMMAND=""
    )
    chosen = [word for model in models for word in ("--model", model)]
    subprocess.run([python, "-m", "gpu_jobs.prepare", *chosen], cwd=ROOT, env=env, check=True)
    with (state_dir / "keeper.log").open("w") as log:
        keeper = subprocess.Popen([python, "-m", "gpu_jobs.engine_keeper"], cwd=ROOT, env=env, stdout=log)
    try:
        until((state_dir / "run" / "engines.sock").exists)
        yield python
    finally:
        keeper.terminate()
        keeper.wait(timeout=30)


def run_bodies(
    state_dir: Path, python: str, model: str, bodies: list[dict[str, Any]], *, endpoint: str = ""
) -> Partition:
    """A partition of these bodies, done by a job; they go to the model's first endpoint unless another is named."""
    card = catalogue()[model]
    url = (state_dir / "objects").as_uri()
    partition = Partition(
        Store(url),
        url,
        state_dir / "run" / "engines.sock",
        state_dir / "none",
        f"batch-{card.kind}{endpoint.replace('/', '-')}",
        endpoint=endpoint or card.endpoints[0],
        spec_model=wanted(card),
        line_seconds_max=300,
    )
    partition.write([], bodies=bodies)
    job = subprocess.run(
        [python, "-m", "gpu_jobs.run", partition.order().to_json()],
        cwd=ROOT,
        env=partition.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert job.returncode == JobExit.DONE, job.stdout + job.stderr
    return partition
