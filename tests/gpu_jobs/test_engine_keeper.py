import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from gpu_jobs import process_groups
from gridline.settings import ROOT
from tests.gpu_jobs.conftest import STUB, environment, start_keeper, until

pytestmark = pytest.mark.programs

MODEL = {"id": "stub", "kind": "chat", "engine_arguments": ["--child"]}


def ask(state_dir: Path, model: dict[str, Any] = MODEL) -> dict[str, Any]:
    """What the keeper answers."""
    with client(state_dir) as keeper:
        answer: dict[str, Any] = keeper.post("/engines", json=model).json()
        return answer


def client(state_dir: Path) -> httpx.Client:
    """A client of the keeper with that state."""
    transport = httpx.HTTPTransport(uds=str(state_dir / "run" / "engines.sock"))
    return httpx.Client(transport=transport, base_url="http://engines")


def ready(state_dir: Path, model: dict[str, Any] = MODEL) -> dict[str, Any]:
    """The keeper's answer once the engine is ready."""

    def answer() -> dict[str, Any] | None:
        found = ask(state_dir, model)
        return found if found["state"] == "ready" else None

    found: dict[str, Any] = until(answer)
    return found


def group(engine: dict[str, Any]) -> int:
    """The process group of the engine that listens at that address."""
    port = engine["url"].rpartition(":")[2]
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if "--port" in words and words[words.index("--port") + 1] == port:
                return os.getpgid(int(entry.name))
    raise AssertionError(port)


def end(keeper: "subprocess.Popen[str]") -> None:
    """SIGTERM, and wait."""
    keeper.terminate()
    keeper.communicate(timeout=20)


def test_engine_is_shared_and_stopped(short_path: Path) -> None:
    """Everybody who asks gets the same engine; SIGTERM leaves no process, record, socket or temporary folder."""
    keeper = start_keeper(short_path)
    assert ask(short_path) == {"state": "starting"}
    first = ready(short_path)
    assert ready(short_path) == first
    members = until(lambda: len(process_groups.members(group(first))) == 2 and group(first))
    assert httpx.get(f"{first['url']}/health").status_code == 200
    with client(short_path) as reader:
        listed = reader.get("/engines").json()["engines"]
        assert [(one["model"], one["state"], one["engine_version"]) for one in listed] == [
            ("stub", "ready", "stub-1")
        ]
        assert first["api_key"] not in reader.get("/engines").text
        assert reader.get("/healthz").json() == {"status": "ok"}
    folders = set(Path("/proc").glob(f"{members}/environ"))
    temporary = Path(_variable(folders.pop(), "TMPDIR"))
    assert temporary.is_dir()
    end(keeper)
    assert keeper.returncode == 0
    assert process_groups.members(members) == {}
    assert not temporary.exists()
    assert list((short_path / "run").rglob("*")) == [short_path / "run" / "engines"]


def _variable(environ: Path, name: str) -> str:
    pairs = dict(one.partition("=")[::2] for one in environ.read_bytes().decode().split("\0"))
    return pairs[name]


def test_key_is_hidden_and_needed(keeper_socket: Path) -> None:
    """An engine answers only to its key, which no process list shows, and sees none of our settings."""
    state_dir, model = keeper_socket.parent.parent, MODEL | {"id": "key"}
    engine = ready(state_dir, model)
    leader = Path(f"/proc/{group(engine)}")
    assert engine["api_key"].encode() not in (leader / "cmdline").read_bytes()
    assert b"GRIDLINE_" not in (leader / "environ").read_bytes()
    answer = httpx.post(f"{engine['url']}/v1/chat/completions", json={"messages": [{"content": ""}]})
    assert answer.status_code == 401


def test_killed_server_leaves_no_child(keeper_socket: Path) -> None:
    """When an engine's server is killed its other processes go too, and the next to ask gets a new engine."""
    state_dir, model = keeper_socket.parent.parent, MODEL | {"id": "killed"}
    engine = ready(state_dir, model)
    number = group(engine)
    until(lambda: len(process_groups.members(number)) == 2)
    os.kill(number, signal.SIGKILL)
    until(lambda: not process_groups.members(number))
    assert ready(state_dir, model)["instance"] != engine["instance"]


def test_killed_keeper_leaves_no_engine(short_path: Path) -> None:
    """A keeper that starts after a kill -9 ends what the last one left, and serves."""
    keeper = start_keeper(short_path)
    number = group(ready(short_path))
    until(lambda: len(process_groups.members(number)) == 2)
    until(lambda: _recorded(short_path) == 2)
    keeper.kill()
    keeper.communicate()
    assert process_groups.members(number)
    keeper = start_keeper(short_path)
    assert process_groups.members(number) == {}
    assert group(ready(short_path)) != number
    end(keeper)


def _recorded(state_dir: Path) -> int:
    """How many processes the keeper has on record."""
    paths = (state_dir / "run" / "engines").glob("*.json")
    return sum(len(json.loads(path.read_text())["members"]) for path in paths)


def test_idle_engine_is_stopped(short_path: Path) -> None:
    """An engine that nobody asks for goes; asking brings it back."""
    keeper = start_keeper(short_path, GRIDLINE_ENGINE_IDLE_SECONDS="1")
    number = group(ready(short_path))
    until(lambda: not process_groups.members(number))
    assert ready(short_path)["state"] == "ready"
    end(keeper)


def test_failed_start_says_where_to_look(keeper_socket: Path) -> None:
    """An engine that ends while it starts is a failure with its log's place, and others are served."""
    state_dir, model = keeper_socket.parent.parent, MODEL | {"id": "failed"}
    bad = {"id": "bad", "kind": "chat", "engine_arguments": ["--refuse-to-start"]}
    answer = until(lambda: found if (found := ask(state_dir, bad))["state"] == "failed" else None)
    assert "engine-bad.log" in answer["why"]
    assert ready(state_dir, model)["state"] == "ready"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"id": "../x", "kind": "chat", "engine_arguments": []}',
        b'{"id": "x", "kind": "chat", "engine_arguments": "--flag"}',
        b'{"id": "x", "kind": "other", "engine_arguments": []}',
    ],
)
def test_what_is_no_model_is_refused(keeper_socket: Path, body: bytes) -> None:
    """A request that names no model is refused and starts nothing."""
    with client(keeper_socket.parent.parent) as keeper:
        before = len(keeper.get("/engines").json()["engines"])
        assert keeper.post("/engines", content=body).status_code == 400
        assert len(keeper.get("/engines").json()["engines"]) == before


def test_one_keeper_a_host(keeper_socket: Path) -> None:
    """A second keeper on the same socket ends at once and takes nothing from the first."""
    second = subprocess.run(
        [sys.executable, "-m", "gpu_jobs.engine_keeper"],
        cwd=ROOT,
        env=environment(keeper_socket.parent.parent, GRIDLINE_ENGINE_COMMAND=STUB),
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert second.returncode == 1
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str(keeper_socket))


def test_socket_is_ours_alone(keeper_socket: Path) -> None:
    """Only the user that runs the keeper can ask it."""
    assert keeper_socket.stat().st_mode & 0o077 == 0
