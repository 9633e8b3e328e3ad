"""The whole real stack for tests: its own state folder and free ports, started once a session, gone afterwards."""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from xmlrpc.client import ServerProxy

import httpx
import psutil
import psycopg
import pytest
from openai import OpenAI
from supervisor.xmlrpc import SupervisorTransport

from gridline.operate.secrets import AIRFLOW_ADMIN_PASSWORD, AIRFLOW_ADMIN_USER
from gridline.operate.stack.places import Places
from gridline.operate.stack.process_control import die_with_parent
from gridline.profiles.profile import load
from gridline.settings import ROOT, Settings, inherited_environment, read_settings

CHAT = "smollm2-135m-instruct"
EMBEDDING = "all-minilm-l6-v2"
ENDED = {"completed", "failed", "expired", "cancelled"}
Found = TypeVar("Found")


def eventually(look: Callable[[], Found | None], *, seconds: float, what: str, every: float = 0.2) -> Found:
    """What a look finds, as soon as it finds anything; fails with `what` when it does not in time."""
    until = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > until:
            pytest.fail(f"not within {seconds:.0f} s: {what}")
        time.sleep(every)


def chat_line(number: int, text: str, *, tokens: int = 24, **body: Any) -> dict[str, Any]:
    """One greedy chat request."""
    return {
        "custom_id": f"line-{number}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {
            "model": CHAT,
            "messages": [{"role": "user", "content": text}],
            "temperature": 0,
            "max_tokens": tokens,
            **body,
        },
    }


def long_lines(how_many: int) -> list[dict[str, Any]]:
    """Chat lines that the engine runs all at once and ends one after the other: each writes some tokens more than the last."""
    return [chat_line(n, f"Tell a long story about {n} ships.", tokens=8 + 3 * n) for n in range(how_many)]


def embedding_line(number: int, text: str) -> dict[str, Any]:
    """One embedding request."""
    body = {"model": EMBEDDING, "input": text}
    return {"custom_id": f"line-{number}", "method": "POST", "url": "/v1/embeddings", "body": body}


def jsonl(lines: list[Any]) -> bytes:
    """The lines as a file; texts go in as they are."""
    return b"".join((one if isinstance(one, str) else json.dumps(one)).encode() + b"\n" for one in lines)


@dataclass
class Customer:
    """An account with a token, and the unmodified SDK on it."""

    id: str
    name: str
    token: str
    url: str
    openai: OpenAI = field(repr=False)

    def create(self, lines: list[Any], *, endpoint: Any = "/v1/chat/completions", window: Any = "24h") -> Any:
        """Upload the lines and create their batch."""
        file = self.openai.files.create(file=("input.jsonl", jsonl(lines)), purpose="batch")
        return self.openai.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window=window)

    def finished(self, batch_id: str, *, seconds: float = 180) -> Any:
        """The batch once it has ended."""

        def look() -> Any:
            batch = self.openai.batches.retrieve(batch_id)
            return batch if batch.status in ENDED else None

        return eventually(look, seconds=seconds, what=f"{batch_id} ends", every=0.5)

    def lines(self, file_id: str) -> list[dict[str, Any]]:
        """A result file's lines."""
        return [json.loads(line) for line in self.openai.files.content(file_id).text.splitlines()]

    def get(self, path: str) -> Any:
        """A page of the API that OpenAI lacks."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.get(f"{self.url}/gridline/v1{path}", headers=headers, timeout=30)
        answer.raise_for_status()
        return answer.json()


@dataclass
class Stack:
    """A running stack, seen from outside."""

    environment: dict[str, str]
    config: Settings
    held: ExitStack = field(repr=False)
    """What is closed with the stack: an SDK that nobody closes would leave its connection to the garbage collector."""

    def gridline(self, *arguments: str, check: bool = True) -> str:
        """What the command prints, run on this stack."""
        done = subprocess.run(
            [sys.executable, "-m", "gridline.cli.main", *arguments],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False, timeout=700,
        )  # fmt: skip
        if check and done.returncode != 0:
            pytest.fail(f"gridline {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def customer(self, name: str, *, credits_: str = "10") -> Customer:
        """A new account of this name with credits and a token."""
        shown = dict(line.split("\t") for line in self.gridline("ops", "account", name).splitlines())
        self.gridline("ops", "grant", name, credits_, "--why", "test", "--key", "test")
        token = self.gridline("ops", "token", name).strip()
        base = f"{self.config.public_api_url}{load(self.config.profile).base_paths[0]}"
        sdk = self.held.enter_context(OpenAI(base_url=base, api_key=token, timeout=60, max_retries=0))
        return Customer(shown["account"], name, token, self.config.public_api_url, sdk)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What the domain's database says, read as its owner."""
        url = self.config.owner_database_url.replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            return connection.execute(query.encode(), values).fetchall()

    def make_due(self, batch_id: str) -> None:
        """Let a 24h batch reach its deadline now, by moving all its times back."""
        moved = ", ".join(
            f"{one} = {one} - interval '24 hours'" for one in ("created_at", "start_by", "expires_at")
        )
        assert self.rows(f"UPDATE batches SET {moved} WHERE id = %s RETURNING id", batch_id)

    def airflow(self) -> httpx.Client:
        """Airflow's REST API as its administrator."""
        base = f"http://127.0.0.1:{self.config.airflow_port}"
        password = self.config.secret(AIRFLOW_ADMIN_PASSWORD)
        given = {"username": AIRFLOW_ADMIN_USER, "password": password}
        token = httpx.post(f"{base}/auth/token", json=given, timeout=30).json()["access_token"]
        return httpx.Client(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=30)

    @contextmanager
    def supervisor(self) -> Iterator[Any]:
        """The supervisor's own interface."""
        transport = SupervisorTransport(None, None, f"unix://{Places(self.config).socket}")
        with ServerProxy("http://127.0.0.1", transport=transport) as proxy:
            yield proxy.supervisor

    def processes(self) -> set[psutil.Process]:
        """Every process of the stack, the warden first."""
        warden = psutil.Process(int(Places(self.config).lock.read_text()))
        return {warden, *warden.children(recursive=True)}


def gpu_jobs(stack: Stack) -> list[psutil.Process]:
    """The GPU jobs that run now."""
    return [one for one in stack.processes() if "gpu_jobs.run" in command_of(one)]


def command_of(process: psutil.Process) -> str:
    """The process's command line; "" once it has ended, which it may do at any moment."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@contextmanager
def new_environment() -> Iterator[dict[str, str]]:
    """The environment of a stack of its own; its state folder is removed afterwards."""
    parent = "/var/lib" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="gridline-test-", dir=parent))
    folder.chmod(0o755)
    base = {
        name: value for name, value in inherited_environment().items() if not name.startswith("GRIDLINE_")
    }
    database, api, dashboard, airflow, metrics, logs = _free_ports()
    # Prepared once a machine, not once a stack: preparing takes most of a minute.
    models = read_settings({}).models_folder.absolute()
    try:
        yield base | {
            "GRIDLINE_STATE_DIR": str(folder),
            "GRIDLINE_DATABASE_PORT": str(database),
            "GRIDLINE_API_PORT": str(api),
            "GRIDLINE_DASHBOARD_PORT": str(dashboard),
            "GRIDLINE_AIRFLOW_PORT": str(airflow),
            "GRIDLINE_METRICS_PORT": str(metrics),
            "GRIDLINE_AIRFLOW_LOG_PORT": str(logs),
            "GRIDLINE_MODELS_DIR": str(models),
            # What a log may not hold it may not hold at its most talkative either.
            "GRIDLINE_LOG_LEVEL": "DEBUG",
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_ports() -> list[int]:
    """Six free loopback ports; the one after the last is free too. Below those that outgoing connections take."""
    found: list[int] = []
    first = random.randrange(20_000, 30_000)
    with ExitStack() as held:
        for port in range(first, first + 2_000):
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                found = []  # seven neighbours, so that the last two are neighbours too
                continue
            found.append(port)
            if len(found) == 7:
                return found[:6]
    raise OSError("no seven neighbouring ports are free")


@contextmanager
def running_stack(
    *, models: Iterable[str] = (CHAT, EMBEDDING), added: Mapping[str, str] | None = None
) -> Iterator[Stack]:
    """A real stack with these packaged models qualified; the fixture ``stack`` shares one with both among all tests."""
    with new_environment() as fresh, ExitStack() as held:
        environment = fresh | dict(added or {})
        one = Stack(environment, read_settings(environment), held)
        child = _start(environment)
        try:
            for model in models:
                one.gridline("models", "qualify", model)
            yield one
        finally:
            _keep_logs(one)
            with child:  # leaving it closes its pipe
                child.terminate()
                child.wait(180)


def _start(environment: dict[str, str]) -> "subprocess.Popen[str]":
    """`gridline up` in the foreground, ready: it and all below it end with the tests, however these end."""
    child = subprocess.Popen(
        [sys.executable, "-m", "gridline.cli.main", "up", "--foreground"],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509  # it calls one C function
    )  # fmt: skip
    said = []
    for line in child.stdout or ():
        said.append(line)
        if line.startswith("Ready after"):
            return child
    child.wait()
    pytest.fail(f"the stack did not start:\n{''.join(said)}")


def _keep_logs(stack: Stack) -> None:
    """Copy the logs beside the project, where a person can read them after a failed run."""
    kept = ROOT / "logs" / "last-test-stack"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(Places(stack.config).logs, kept, ignore_dangling_symlinks=True)
