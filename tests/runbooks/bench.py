"""The platform of the runbooks: a real stack whose engine and store fail when they are told to."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from gridline.operate.qualifying import CAPITAL, CAPITAL_ANSWER
from gridline.operate.stack.places import Places
from gridline.settings import ROOT, inherited_environment, read_settings
from tests.runbooks import full_store
from tests.runbooks.full_store import FillableStore
from tests.stack import CHAT, Customer, Stack, chat_line, command_of, eventually, running_stack

AS_JSON = f"{CAPITAL} Answer as JSON."
GOOD = {CAPITAL: f"It is {CAPITAL_ANSWER}.", AS_JSON: json.dumps({"city": CAPITAL_ANSWER})}
"""What a good model answers to the known prompts."""


@dataclass
class Platform:
    """The stack, and what may go wrong around it."""

    stack: Stack
    store: FillableStore = field(repr=False)
    folder: Path
    """Where the engines look: what they answer, and whether they may start."""

    def answers(self, known: dict[str, str]) -> None:
        """What the model answers from now on; to all else the stub echoes."""
        (self.folder / "answers.json").write_text(json.dumps(known))

    @property
    def refusal(self) -> Path:
        """While this file exists, no engine starts."""
        return self.folder / "engine-is-broken"

    def engines(self) -> list[psutil.Process]:
        """The engines that run now."""
        return [one for one in self.stack.processes() if "stub_engine.py" in command_of(one)]

    def program(self, name: str) -> psutil.Process | None:
        """A supervised program; None while it does not run."""
        with self.stack.supervisor() as supervisor:
            pid = supervisor.getProcessInfo(name)["pid"]
        return psutil.Process(pid) if pid else None

    def supervisorctl(self, *words: str) -> str:
        """What the supervisor's own command says, given as an operator gives it."""
        places = Places(self.stack.config)
        command = [str(ROOT / ".venv/bin/supervisorctl"), "-c", str(places.configuration), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        return done.stdout + done.stderr

    def status(self) -> dict[str, str]:
        """What `gridline status` says of each part, whether it ended well or not."""
        lines = self.stack.gridline("status", check=False).splitlines()
        # Addresses come last, under the names of their parts.
        return dict(line.split("\t", 1) for line in reversed(lines) if "\t" in line)

    def log(self, part: str) -> str:
        """A part's log."""
        return (Places(self.stack.config).logs / f"{part}.log").read_text(errors="replace")

    def task_log(self, batch_id: str, task: str) -> str:
        """The logs of a task of the batch's run."""
        folder = Places(self.stack.config).logs / f"airflow/dag_id=batch/run_id={batch_id}/task_id={task}"
        return "".join(one.read_text(errors="replace") for one in folder.rglob("*.log"))

    def metric(self, name: str, *, of: str = "keeper") -> float:
        """The sum of a metric's series at its page; 0 while the page does not answer."""
        port = self.stack.config.metrics_port if of == "keeper" else self.stack.config.api_port
        try:
            page = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=5).text
        except httpx.HTTPError:
            return 0
        rows = [line.rpartition(" ") for line in page.splitlines() if not line.startswith("#")]
        return sum(float(value) for series, _, value in rows if series.startswith(name))

    def lines(self, how_many: int, *, slower: float = 0.0) -> list[dict[str, Any]]:
        """Chat lines to each of which the engine answers so many seconds later than to the one before."""
        return [chat_line(n, f"Number {n} !sleep={slower * n}") for n in range(how_many)]

    def books_hold(self) -> bool:
        """Whether `gridline books` proves them."""
        return "The books hold" in self.stack.gridline("books")

    def run_of_prove(self) -> str:
        """Trigger DAG `prove` as an operator does; the id of the run."""
        with self.stack.airflow() as airflow:
            made = airflow.post("/api/v2/dags/prove/dagRuns", json={"logical_date": None})
            return str(made.raise_for_status().json()["dag_run_id"])

    def outcome_of(self, run: str) -> tuple[str, str]:
        """How a run of `prove` ended, and its task's log."""
        path = f"/api/v2/dags/prove/dagRuns/{run}"
        with self.stack.airflow() as airflow:

            def ended() -> str | None:
                state = airflow.get(path).raise_for_status().json()["state"]
                return str(state) if state in {"success", "failed"} else None

            state = eventually(ended, seconds=120, what=f"{run} of prove ends", every=1)
            log = airflow.get(f"{path}/taskInstances/prove_promises/logs/1?full_content=true")
            return state, log.raise_for_status().text

    def begun(self, customer: Customer, lines: list[dict[str, Any]]) -> str:
        """A batch of these lines, some of which are done."""
        batch = customer.create(lines)

        def done() -> bool:
            counts = customer.openai.batches.retrieve(batch.id).request_counts
            return counts is not None and counts.completed > 0

        eventually(done, seconds=120, what=f"some lines of {batch.id} are done")
        return str(batch.id)

    def put_right(self) -> None:
        """Leave nothing broken to the next runbook, however this one ended."""
        self.store.full.clear()
        self.refusal.unlink(missing_ok=True)
        self.answers(GOOD)


@contextmanager
def running_platform(folder: Path) -> Iterator[Platform]:
    """The platform with its chat model qualified; the folder is the engines'."""
    _prepare()
    command = [sys.executable, str(ROOT / "tests/stub_engine.py")]
    with full_store.serving() as store:
        one = Platform(None, store, folder)  # type: ignore[arg-type]  # its stack reads the folder when it starts
        one.put_right()
        added = store.environment() | {
            "GRIDLINE_ENGINE_COMMAND": " ".join(
                [*command, "--answers", str(folder / "answers.json"), "--refuse-while", str(one.refusal)]
            ),
            "GRIDLINE_WEBHOOK_NETWORKS": "127.0.0.0/8",
        }
        with running_stack(models=[CHAT], added=added) as stack:
            one.stack = stack
            yield one


def _prepare() -> None:
    """Make the model's folder, whose tokenizer the check of a file needs; a stack with another engine does not."""
    folder = read_settings({}).models_folder.absolute()
    subprocess.run(
        [sys.executable, "-m", "gridline.cli.main", "models", "prepare", CHAT],
        cwd=ROOT, env=inherited_environment() | {"GRIDLINE_MODELS_DIR": str(folder)}, check=True, capture_output=True,
    )  # fmt: skip
