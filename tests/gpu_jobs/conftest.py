"""Jobs against a stub engine behind a real engine keeper; each test's model gets an engine of its own."""

import asyncio
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpu_jobs.job import Job, Rhythm
from gpu_jobs.logs import Log
from gridline.lines.adapters import Adapter
from gridline.lines.collating import collate
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.lines.partitions import SCHEMA
from gridline.lines.sealing import seal
from gridline.lines.segments import ResultRow, read_rows
from gridline.settings import ROOT, inherited_environment
from gridline.storage import Store, layout

STUB = f"{sys.executable} {ROOT / 'tests' / 'stub_engine.py'}"
QUICK = Rhythm(beat=0.05, close=0.02, ask=0.05, keeper_away=0.5, segment_seconds=0.1)


def until(true: Callable[[], Any], seconds: float = 20) -> Any:
    """What the function returns once that is true; an assertion error when it takes too long."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.05)
    return found


def environment(state_dir: Path, **more: str) -> dict[str, str]:
    """The environment of a child process that has its own state."""
    return inherited_environment() | {"GRIDLINE_STATE_DIR": str(state_dir)} | more


def start_keeper(state_dir: Path, **more: str) -> subprocess.Popen[str]:
    """An engine keeper with stub engines, listening."""
    socket = state_dir / "run" / "engines.sock"
    process = subprocess.Popen(
        [sys.executable, "-m", "gpu_jobs.engine_keeper"],
        cwd=ROOT,
        env=environment(state_dir, GRIDLINE_ENGINE_COMMAND=STUB) | more,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    assert any("engine keeper ready" in line for line in lines), "the keeper ended"
    assert socket.exists()
    return process


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path leaves room for a Unix socket's name."""
    with tempfile.TemporaryDirectory(prefix="gl-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def keeper_socket() -> Iterator[Path]:
    """The socket of one engine keeper for all tests."""
    with tempfile.TemporaryDirectory(prefix="gl-") as folder:
        process = start_keeper(Path(folder), GRIDLINE_TOKEN_PEPPER="pepper")
        yield Path(folder) / "run" / "engines.sock"
        process.terminate()
        process.communicate(timeout=20)
        assert list((Path(folder) / "run" / "engines").iterdir()) == []


@dataclass
class Partition:
    """One partition in a store, with a model of its own."""

    store: Store
    url: str
    socket: Path
    journal: Path
    batch_id: str
    endpoint: str = "/v1/chat/completions"
    engine_arguments: tuple[str, ...] = ()
    line_seconds_max: float = 20
    spec_model: dict[str, Any] | None = None
    adapters: tuple[Adapter, ...] = ()
    rhythm: Rhythm = QUICK

    def write(
        self, texts: list[str], bodies: list[dict[str, Any]] | None = None, ids: list[str] | None = None
    ) -> None:
        """Store the partition: one line a text, numbered from 0, or one a body."""
        bodies = bodies or [{"messages": [{"role": "user", "content": text}]} for text in texts]
        rows = {
            "line": list(range(len(bodies))),
            "custom_id": ids or [f"c{number}" for number in range(len(bodies))],
            "body": [json.dumps({"model": self.model} | body) for body in bodies],
            "input_tokens": [len(str(body)) for body in bodies],
        }
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(rows, schema=SCHEMA), sink)
        self.store.put_once(self.lines_key, sink.getvalue().to_pybytes())
        spec = {
            "format": 1,
            "batch_id": self.batch_id,
            "partition": 0,
            "endpoint": self.endpoint,
            "model": self.spec_model
            or {
                "id": self.model,
                "commit": "",
                "dtype": "float32",
                "kind": "chat",
                "context_tokens": 8192,
                "engine_arguments": ["--journal", str(self.journal), *self.engine_arguments],
            },
            "adapters": [one.as_dict() for one in self.adapters],
            "lines_key": self.lines_key,
            "lines": len(bodies),
            "line_seconds_max": self.line_seconds_max,
        }
        self.store.put_once(layout.partition_spec_key(self.batch_id, 0), json.dumps(spec).encode())

    @property
    def model(self) -> str:
        """The model's id: nobody else's, so its engine is ours alone."""
        if self.spec_model:
            return str(self.spec_model["id"])
        return f"stub-{self.batch_id.removeprefix('batch-')}"

    @property
    def lines_key(self) -> str:
        """Where the lines are."""
        return layout.partition_lines_key(self.batch_id, 0)

    def prefix(self, attempt: int = 1) -> str:
        """Where an attempt writes."""
        return layout.attempt_prefix(self.batch_id, 0, attempt, f"lease_{attempt}")

    def order(self, attempt: int = 1, deadline_unix: int | None = None) -> JobOrder:
        """The order for an attempt, which resumes from those before it."""
        return JobOrder(
            spec_key=layout.partition_spec_key(self.batch_id, 0),
            attempt_prefix=self.prefix(attempt),
            earlier_prefixes=tuple(self.prefix(one) for one in range(1, attempt)),
            deadline_unix=deadline_unix,
        )

    def job(self, attempt: int = 1, **more: Any) -> Job:
        """The job of an attempt, in this process; make it inside an event loop."""
        store = more.pop("store", self.store)
        order = self.order(attempt, **more)
        return Job(order, store, socket=self.socket, log=Log("gpu-job"), rhythm=self.rhythm)

    def run(self, attempt: int = 1, **more: Any) -> JobExit:
        """Run an attempt in this process."""

        async def run() -> JobExit:
            return await self.job(attempt, **more).run()

        return asyncio.run(run())

    def start(self, attempt: int = 1, **more: Any) -> subprocess.Popen[str]:
        """Start an attempt as the process that it is in production."""
        return subprocess.Popen(
            [sys.executable, "-m", "gpu_jobs.run", self.order(attempt, **more).to_json()],
            cwd=ROOT,
            env=environment(
                self.socket.parent.parent,
                GRIDLINE_STORE_URL=self.url,
                GRIDLINE_ENGINE_SOCKET=str(self.socket),
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def usage(self, account_id: str) -> dict[str, list[int]]:
        """What is charged once the batch is collated: lines, input and output tokens by model."""
        seal(self.store, self.batch_id, 0, [(1, "lease_1")])
        return collate(
            self.store,
            batch_id=self.batch_id,
            account_id=account_id,
            partitions=[0],
            output_key=layout.file_key(account_id, f"output-{self.batch_id}"),
            error_key=layout.file_key(account_id, f"error-{self.batch_id}"),
            missing=("server_error", "missing"),
        ).usage_by_model

    def environment(self) -> dict[str, str]:
        """The environment of a job's process."""
        return environment(
            self.socket.parent.parent, GRIDLINE_STORE_URL=self.url, GRIDLINE_ENGINE_SOCKET=str(self.socket)
        )

    def rows(self, attempt: int = 1) -> list[ResultRow]:
        """All rows of an attempt, by line."""
        keys = [key for key in self.store.list(self.prefix(attempt)) if layout.is_segment(key)]
        return sorted(
            (row for key in keys for row in read_rows(self.store.read(key))), key=lambda row: row.line
        )

    def codes(self, attempt: int = 1) -> list[str | None]:
        """The error code of every row, by line."""
        return [row.code for row in self.rows(attempt)]

    def said(self, attempt: int = 1) -> list[str]:
        """What each delivered line was answered."""
        return [json.loads(row.body)["choices"][0]["message"]["content"] for row in self.rows(attempt)]

    def progress(self, attempt: int = 1) -> dict[str, Any]:
        """The attempt's progress object."""
        body: dict[str, Any] = json.loads(self.store.read(layout.progress_key(self.prefix(attempt))))
        return body

    def sent(self) -> list[str]:
        """Every text that reached the engine, in that order."""
        return [one["text"] for one in self.journalled()]

    def engines(self) -> int:
        """How many engines served it."""
        return len({one["pid"] for one in self.journalled()})

    def journalled(self) -> list[dict[str, Any]]:
        """What the engine wrote down about every request."""
        if not self.journal.exists():
            return []
        return [json.loads(line) for line in self.journal.read_text().splitlines()]

    def like(self, **changes: Any) -> "Partition":
        """Another partition of other manners."""
        return replace(self, batch_id=f"batch-{secrets.token_hex(6)}", **changes)


@pytest.fixture
def partition(tmp_path: Path, keeper_socket: Path) -> Partition:
    """A partition yet to be written."""
    url = (tmp_path / "objects").as_uri()
    batch_id = f"batch-{secrets.token_hex(6)}"
    return Partition(Store(url), url, keeper_socket, tmp_path / "journal.jsonl", batch_id)
