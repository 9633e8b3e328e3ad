"""A platform around one real GPU job: files, rows and books in this process, the engine keeper and each job as processes.

Time stands still unless a test moves it. Tests kill what they like, and read what the customer would.
"""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil

from gpu_jobs.engine_start import lines_at_once
from gridline import storage
from gridline.batches import finishing, holding, intake, validating
from gridline.batches.repeats import Sent
from gridline.batches.requests import CreateRequest
from gridline.batches.tables import Batch
from gridline.capacity import allocator, attempts
from gridline.clock import FrozenClock
from gridline.db.work import unit_of_work
from gridline.files import receiving
from gridline.files.tables import File
from gridline.ledger import proving
from gridline.ledger import reading as books
from gridline.lines import endpoints
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.lines.segments import read_line_numbers
from gridline.profiles.profile import load
from gridline.settings import ROOT
from gridline.storage import Store, layout
from tests.gpu_jobs.conftest import environment

Answer = Literal["done", "again", "over"]
MODEL = "tiny-chat"
CREDIT = 10**9
AT_ONCE = lines_at_once()[1]
TEXT_CHARS = 40


def requests(texts: Iterable[str]) -> bytes:
    """One line a text; texts of one length, so that the engine's order is the file's."""
    rows = []
    for number, text in enumerate(texts):
        messages = [{"role": "user", "content": text.ljust(TEXT_CHARS)}]
        body = {"model": MODEL, "max_tokens": 8, "messages": messages}
        url = "/v1/chat/completions"
        rows.append({"custom_id": f"c{number}", "method": "POST", "url": url, "body": body})
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def strict(text: bytes) -> Any:
    """JSON as the strictest reader takes it: UTF-8, and no constant that JSON lacks."""

    def refuse(name: str) -> float:
        raise ValueError(name)

    return json.loads(text.decode("utf-8"), parse_constant=refuse)


@dataclass
class SmallPlatform:
    """One customer, one model with a stub engine, one pool."""

    clock: FrozenClock
    folder: Path
    """Where its objects and the engines' journal are."""
    state: Path
    """Where its engine keeper and its model are."""
    account_id: str
    jobs: list["subprocess.Popen[str]"] = field(default_factory=list)

    @property
    def store(self) -> Store:
        """Its objects."""
        return storage.store()

    @property
    def journal(self) -> Path:
        """The engines' journal."""
        return self.folder / "journal.jsonl"

    def seconds(self) -> float:
        """A monotonic clock that goes as the frozen one does."""
        return self.clock.moment.timestamp()

    def create(self, data: bytes, *, endpoint: str = endpoints.CHAT) -> str:
        """Upload the file and create its batch; it is checked, its credit held, and a GPU granted."""
        with receiving.receive(self.store, self.account_id, load("gridline")) as incoming:
            incoming.name("r.jsonl")
            incoming.write(data)
            incoming.finish()
        file_id = receiving.keep(self.store, incoming, expires_after_seconds=None).id
        wanted = CreateRequest(file_id, endpoint, "24h", {}, None)
        with unit_of_work() as work:
            made = intake.create(
                work, account_id=self.account_id, actor="token:test", request=wanted, sent=Sent(key=None)
            )
            batch_id = made.batch.id
        assert validating.validate(batch_id) == [0], self.row(batch_id).errors
        assert holding.hold_credits(batch_id) == "held"
        return batch_id

    def begin(self, batch_id: str) -> JobOrder:
        """The order for the next attempt."""
        allocator.allocate()
        order = attempts.begin(batch_id, 0)
        assert isinstance(order, JobOrder), order
        return order

    def start(self, order: JobOrder) -> "subprocess.Popen[str]":
        """Its job, as production starts it."""
        return self.start_module("gpu_jobs.run", order.to_json())

    def start_module(self, *arguments: str, **more: str) -> "subprocess.Popen[str]":
        """One of our programs, on this platform's store and engines."""
        more |= {
            "GRIDLINE_STORE_URL": (self.folder / "objects").as_uri(),
            "GRIDLINE_ENGINE_SOCKET": str(self.state / "run" / "engines.sock"),
        }
        job = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT, env=environment(self.state, **more),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.jobs.append(job)
        return job

    def run(self, batch_id: str, *, seconds: float = 120) -> tuple[Answer, list[dict[str, Any]]]:
        """One attempt from its grant to its end; what is left to do, and the job's log."""
        order = self.begin(batch_id)
        job = self.start(order)
        log, _ = job.communicate(timeout=seconds)
        answer = attempts.end(batch_id, 0, order.lease_id, JobExit.of(job.returncode))
        return answer, [json.loads(line) for line in log.splitlines()]

    def finish(self, batch_id: str) -> Batch:
        """The run's last two tasks; the batch as it ended."""
        finishing.collate(batch_id)
        finishing.settle(batch_id)
        return self.row(batch_id)

    def row(self, batch_id: str) -> Batch:
        """The batch as it is committed."""
        with unit_of_work() as work:
            return work.session.get_one(Batch, batch_id)

    def lines(self, file_id: str | None) -> list[dict[str, Any]]:
        """A result file's lines, read strictly; none where there is no file."""
        if file_id is None:
            return []
        with unit_of_work() as work:
            key = work.session.get_one(File, file_id).object_key
        return [strict(line) for line in self.store.read(key).removesuffix(b"\n").split(b"\n")]

    def balance(self) -> tuple[int, int]:
        """Available and held nano-credits; the books hold."""
        with unit_of_work() as work:
            found = books.balance(work, self.account_id)
            assert proving.prove(work) == []
            return found.available_nanos, found.held_nanos

    def journalled(self) -> list[dict[str, Any]]:
        """What the engines wrote down about every request that reached one."""
        if not self.journal.exists():
            return []
        # The last line may be half written.
        whole = self.journal.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def asked(self) -> Counter[str]:
        """How often an engine was asked each text."""
        return Counter(one["text"] for one in self.journalled())

    def engines(self) -> list[int]:
        """The processes that served, in their order."""
        return list(dict.fromkeys(one["pid"] for one in self.journalled()))

    def closed(self, order: JobOrder) -> set[int]:
        """Lines in closed segments of an attempt."""
        keys = filter(layout.is_segment, self.store.list(order.attempt_prefix))
        return {line for key in keys for line in read_line_numbers(self.store.read(key))}

    def living(self) -> list[str]:
        """Command lines of jobs and engines of this platform that still run."""
        found = []
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
                dead = process.status() == psutil.STATUS_ZOMBIE
            except psutil.Error:
                continue
            ours = process.pid in {job.pid for job in self.jobs} or str(self.journal) in words
            if ours and not dead:
                found.append(" ".join(words))
        return found

    def end(self) -> None:
        """End what the test left running."""
        for job in self.jobs:
            if job.poll() is None:
                job.send_signal(signal.SIGKILL)
                job.communicate()
