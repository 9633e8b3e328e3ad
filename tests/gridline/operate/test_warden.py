"""Nothing is left behind: the warden, the supervisor and the tether against kills."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from gridline.operate import secrets
from gridline.operate.stack.places import Places
from gridline.operate.stack.process_control import descendants
from gridline.settings import ROOT, Settings, inherited_environment

pytestmark = pytest.mark.programs

# A warden whose supervisor has two programs of the test's: one plain, one that starts a child in a session of its own.
WARDEN = """
import sys
from gridline.operate.stack import supervision, warden
from gridline.operate.stack.places import Places

def write(config):
    places = Places(config)
    places.configuration.write_text(f'''
[unix_http_server]
file={places.socket}
[supervisord]
nodaemon=true
user=root
pidfile={places.supervisor_pid}
logfile={places.logs}/supervisord.log
[program:plain]
command=sleep 1000
[program:escaping]
command=sh -c "setsid sleep 2000 & exec sleep 3000"
autorestart=false
'''.replace('user=root', 'user=root' if __import__('os').geteuid() == 0 else ''))

supervision.write = write
sys.exit(warden.main())
"""


def wait_for(look: Callable[[], bool], *, seconds: float = 20) -> None:
    """Wait until it is so, or fail."""
    until = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < until, "not in time"
        time.sleep(0.05)


def gone(process: psutil.Process) -> bool:
    """Whether a process has ended (a zombie has)."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def config(state_dir: Path) -> Settings:
    """Settings of a state folder."""
    return Settings(state_dir=state_dir)


@pytest.fixture
def warden(config: Settings, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A running warden with its programs up; a test's parameter names the parts of its machine."""
    environment = inherited_environment() | {
        "GRIDLINE_STATE_DIR": str(config.state_dir),
        "GRIDLINE_PARTS": getattr(request, "param", ""),
    }
    child = subprocess.Popen([sys.executable, "-c", WARDEN], cwd=ROOT, env=environment)
    everything: list[psutil.Process] = []
    try:
        # The supervisor and three sleeps, one of them in its own session.
        wait_for(lambda: len(_named(child.pid, "sleep")) >= 3)
        everything = [psutil.Process(pid) for pid in descendants(child.pid)]
        yield child
    finally:
        for one in everything:
            if not gone(one):
                one.kill()
        child.kill()
        child.wait()


def _named(pid: int, name: str) -> list[psutil.Process]:
    found = []
    for one in descendants(pid):
        try:
            process = psutil.Process(one)
            if process.name() == name and not gone(process):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_a_stop_takes_everything_along(warden: subprocess.Popen[bytes]) -> None:
    """SIGTERM ends the supervisor, its programs, and the child that hid in its own session."""
    everything = [psutil.Process(pid) for pid in descendants(warden.pid)]
    warden.terminate()
    assert warden.wait(30) == 0
    assert [one for one in everything if not gone(one)] == []


def test_a_killed_supervisor_leaves_nothing(warden: subprocess.Popen[bytes], config: Settings) -> None:
    """Kill -9 of the supervisor ends all of its programs, and the warden says that this was no stop."""
    everything = [psutil.Process(pid) for pid in descendants(warden.pid)]
    psutil.Process(int(Places(config).supervisor_pid.read_text())).kill()
    assert warden.wait(30) == 1
    assert [one for one in everything if not gone(one)] == []


def test_an_orphan_is_ended_while_the_stack_runs_on(warden: subprocess.Popen[bytes]) -> None:
    """A process whose parent was killed becomes the warden's and is ended; the other programs stay."""
    hidden = next(one for one in _named(warden.pid, "sleep") if "2000" in one.cmdline())
    parent = hidden.parent()
    assert parent is not None
    parent.kill()
    wait_for(lambda: gone(hidden))
    assert [one.cmdline()[1] for one in _named(warden.pid, "sleep")] == ["1000"]
    assert warden.poll() is None


@pytest.mark.usefixtures("warden")
@pytest.mark.parametrize(("warden", "made"), [("", True), ("dashboard", False)], indirect=["warden"])
def test_secrets_are_made_where_init_runs(config: Settings, *, made: bool) -> None:
    """On a machine of other parts they are read only: its folder of secrets may be one that nobody can write."""
    assert config.secrets_dir.exists() is made


def test_a_second_warden_is_refused(warden: subprocess.Popen[bytes], config: Settings) -> None:
    """One state folder has one stack; the second one says so and touches nothing."""
    environment = inherited_environment() | {"GRIDLINE_STATE_DIR": str(config.state_dir)}
    second = subprocess.run(
        [sys.executable, "-c", WARDEN], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert second.returncode == 2
    assert "already runs" in second.stderr
    assert warden.poll() is None


PARENT = """
import os, subprocess, sys, time
from pathlib import Path
from gridline.operate.stack.places import Places
from gridline.settings import settings
Places(settings()).supervisor_pid.write_text(str(os.getpid()))
subprocess.Popen([sys.executable, "-m", "gridline.operate.stack.tether", "engine-keeper"])
time.sleep(1000)
"""


def test_a_tethered_program_dies_with_the_supervisor(config: Settings, tmp_path: Path) -> None:
    """Kill -9 of the parent reaches the program through exec, without anybody left to pass it on."""
    Places(config).make()
    secrets.make(config)
    stand_in = tmp_path / "engine"
    stand_in.write_text("#!/bin/sh\nexec sleep 4000\n")
    stand_in.chmod(0o755)
    environment = inherited_environment() | {
        "GRIDLINE_STATE_DIR": str(config.state_dir),
        "GRIDLINE_ENGINE_PYTHON": str(stand_in),
    }
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, env=environment)
    try:
        wait_for(lambda: bool(_named(parent.pid, "sleep")))
        (program,) = _named(parent.pid, "sleep")
        parent.send_signal(signal.SIGKILL)
        wait_for(lambda: gone(program))
    finally:
        parent.kill()
        parent.wait()
