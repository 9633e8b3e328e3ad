"""The live server of the API's tests, and a customer whom no rate stops: what is tried here is many requests."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine, update

from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.storage.objects import Store
from tests.api.conftest import Customer, address, customer, database, pepper, qualified, shared_database
from tests.conftest import free_port
from tests.serving import PEPPER, until

__all__ = ["address", "database", "pepper", "qualified", "shared_database"]


def unbounded(customer: Customer) -> Customer:
    """The customer, who may now send as many requests, and open as many batches, as it takes."""
    more = {"requests_per_minute_max": 10_000_000, "open_batches_max": 10_000}
    with unit_of_work() as work:
        work.session.execute(update(Account).where(Account.id == customer.account_id).values(**more))
    return customer


@pytest.fixture
def mallory(address: str, database: Engine, store: Store) -> Iterator[Customer]:
    """A customer of the live server within this process."""
    for one in customer(address, "mallory"):
        yield unbounded(one)


@dataclass
class Process:
    """The API as a process of its own, in a folder of its own, with all that it says in a file."""

    process: subprocess.Popen[bytes]
    port: int
    folder: Path

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def memory_megabytes(self, kind: str = "VmRSS") -> int:
        """Memory in use now; ``VmHWM``: the most it ever was."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [one for one in status.splitlines() if one.startswith(kind)]
        return int(line.split()[1]) // 1000


@pytest.fixture
def served(database: Engine, tmp_path: Path) -> Iterator[Process]:
    """``python -m api.serve`` on a free port, ready."""
    port = free_port()
    for name in ("work", "scratch"):
        (tmp_path / name).mkdir()
    environ = {
        "PATH": os.environ["PATH"],
        "TMPDIR": str(tmp_path / "scratch"),
        "GRIDLINE_DATABASE_URL": database.url.render_as_string(hide_password=False),
        "GRIDLINE_STORE_URL": (tmp_path / "objects").as_uri(),
        "GRIDLINE_STATE_DIR": str(tmp_path / "state"),
        "GRIDLINE_TOKEN_PEPPER": PEPPER,
        "GRIDLINE_API_PORT": str(port),
    }
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "api.serve"],
            cwd=tmp_path / "work", env=environ, stdout=log, stderr=log,
        )  # fmt: skip
        one = Process(process, port, tmp_path)
        try:
            until(lambda: httpx.get(f"{one.url}/readyz", verify=False).status_code == 200)
            yield one
        finally:
            process.kill()
            process.wait()
