"""The tests' side of a crash: states to go back to, children to kill, and what must hold when all is over."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Engine, func, select

from gridline import storage
from gridline.batches.tables import Batch
from gridline.clock import FrozenClock
from gridline.db.every_table import METADATA
from gridline.db.work import unit_of_work
from gridline.lines.segments import read_line_numbers
from gridline.proof import platform
from gridline.settings import ROOT, inherited_environment
from gridline.storage import Store, layout
from tests.faults.crash_world import NEIGHBOUR_LINES, World

TABLES = [table.name for table in METADATA.sorted_tables]
Kill = tuple[str, str, int]


class Children:
    """The process that forks, and its children."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def order(self, **order: Any) -> dict[str, Any]:
        """Give one order; the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def end(self) -> None:
        """End it."""
        self._process.communicate(timeout=20)


@contextmanager
def children(state: Path, models: Path) -> Iterator[Children]:
    """A fresh process that forks, whose engine keeper's socket is in the state folder."""
    environment = inherited_environment() | {
        "GRIDLINE_STATE_DIR": str(state),
        "GRIDLINE_MODELS_DIR": str(models),
        "GRIDLINE_TOKEN_PEPPER": "pepper",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.crash_child"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    one = Children(process)
    try:
        yield one
    finally:
        one.end()


@dataclass
class Saved:
    """A state to go back to: every row, every object, and the world's file."""

    rows: dict[str, bytes]
    folder: Path


@dataclass
class Bench:
    """A database, a folder that is the world, and children that act on them."""

    children: Children
    superuser: "psycopg.Connection[Any]"
    database: Engine
    clock: FrozenClock
    folder: Path
    living: set[int] = field(default_factory=set)

    @property
    def journal(self) -> Path:
        """What the engine was asked, in all worlds."""
        return self.folder / "journal.jsonl"

    @property
    def place(self) -> Path:
        """The folder of the world that is acted on."""
        return self.folder / "world"

    @property
    def world(self) -> World:
        """The world as the last child left it."""
        return World.of(self.place)

    def order(self, steps: tuple[str, ...], kill: Kill | None = None, *, wait: bool = True) -> dict[str, Any]:
        """What a child is told."""
        url = self.database.url.render_as_string(hide_password=False)
        told = {"database": url, "folder": str(self.place), "journal": str(self.journal), "steps": steps}
        return self.children.order(**told, kill=kill, wait=wait)

    def take(self, *steps: str) -> list[tuple[str, int]]:
        """Take steps in a child that lives; the points that it passed."""
        status = self.order(steps)["status"]
        if status != 0:
            raise AssertionError(f"{steps} ended with {status}: {(self.place / 'error.txt').read_text()}")
        return [(label, number) for label, number in json.loads((self.place / "points.json").read_text())]

    def start(self, step: str) -> int:
        """Have a child take a step while others go on; its pid."""
        pid = int(self.order((step,), wait=False)["pid"])
        self.living.add(pid)
        return pid

    def wait_for(self, pid: int) -> None:
        """Until a started child has ended."""
        if pid in self.living:
            self.living.discard(pid)
            self.children.order(wait_for=pid)

    def die(self, step: str, kill: Kill) -> bool:
        """Take a step in a child that dies at a point; whether it came to it (what runs beside itself need not)."""
        status = self.order((step,), kill)["status"]
        if status == 0:
            return False
        assert status == signal.SIGKILL, (self.place / "error.txt").read_text()
        return True

    def clear(self) -> None:
        """An empty database and an empty world."""
        self._write({})
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)

    def save(self) -> Saved:
        """Keep the state."""
        rows = {}
        for name in TABLES:
            with self.superuser.cursor().copy(f'COPY "{name}" TO STDOUT') as copy:
                rows[name] = b"".join(bytes(piece) for piece in copy)
        kept = self.folder / "saved"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.place, kept, copy_function=os.link)
        return Saved(rows, kept)

    def restore(self, saved: Saved) -> None:
        """Go back to a state. Objects are never written in place, so links are copies."""
        self._write(saved.rows)
        shutil.rmtree(self.place)
        shutil.copytree(saved.folder, self.place, copy_function=os.link)

    def _write(self, rows: dict[str, bytes]) -> None:
        with self.superuser.transaction():
            self.superuser.execute("SET LOCAL session_replication_role = replica")
            self.superuser.execute("; ".join(f'DELETE FROM "{name}"' for name in reversed(TABLES)))
            for name, data in rows.items():
                if data:
                    with self.superuser.cursor().copy(f'COPY "{name}" FROM STDIN') as copy:
                        copy.write(data)

    def store(self) -> Store:
        """The world's objects."""
        return Store(self.world.store_url)

    def broken(self) -> list[str]:
        """What a proof with files finds."""
        self.clock.moment = self.world.clock.moment
        before = storage.store
        store = self.store()
        storage.store = lambda: store  # type: ignore[assignment]
        try:
            found = platform.prove_with_files()
        finally:
            storage.store = before
        return found.broken

    def batches(self) -> int:
        """How many batches there are."""
        with unit_of_work() as work:
            return work.session.scalar(select(func.count()).select_from(Batch)) or 0

    def asked(self) -> Counter[str]:
        """How often the engine was asked each text so far."""
        if not self.journal.exists():
            return Counter()
        return Counter(json.loads(line)["text"] for line in self.journal.read_text().splitlines())

    def segments(self, partition: int) -> list[str]:
        """A partition's closed segments."""
        prefix = layout.attempts_prefix(self.world.batch_id, partition)
        return [key for key in self.store().list(prefix) if layout.is_segment(key)]

    def closed(self, partition: int) -> set[int]:
        """Lines of a partition that stand in closed segments."""
        store = self.store()
        return {line for key in self.segments(partition) for line in read_line_numbers(store.read(key))}


@dataclass(frozen=True)
class Ended:
    """How a batch ended, as far as it must not depend on any crash."""

    status: str
    completed: int
    failed: int
    cancelled: int
    error_code: str | None


def ended(batch_id: str) -> Ended:
    """How a batch ended."""
    with unit_of_work() as work:
        row = work.session.get_one(Batch, batch_id)
        return Ended(row.status, row.completed, row.failed, row.cancelled, row.error_code)


NEIGHBOUR = Ended("completed", NEIGHBOUR_LINES, 0, 0, None)
