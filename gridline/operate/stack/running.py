"""Starting, watching and stopping the stack of this state folder, for the command line and the demo."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

from gridline.errors import SettingInvalid, Unavailable
from gridline.operate.stack import ports, readiness
from gridline.operate.stack.places import Places
from gridline.settings import ROOT, Settings, inherited_environment

START_SECONDS_MAX = 60
READY_SECONDS_MAX = 420
STOP_SECONDS_MAX = 120
LOOK_SECONDS = 0.3
SHOW_PROGRESS_SECONDS = 10


def running_pid(config: Settings) -> int | None:
    """The warden's process id while a stack runs in this state folder."""
    lock = Places(config).lock
    try:
        with lock.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        text = lock.read_text().strip()
        return int(text) if text else None
    return None


def start(config: Settings, *, tied: bool, added: Mapping[str, str] | None = None) -> int:
    """Start the stack unless it runs, without waiting for its parts; returns the warden's process id.

    Args:
        config: where and on which ports.
        tied: the stack stops when this process ends, however it ends.
        added: environment for its programs, beside this process's own.

    Raises:
        SettingInvalid: a port is taken, or the state folder cannot be used.
        Unavailable: the warden ended at once.
    """
    found = running_pid(config)
    if found is not None:
        return found
    places = Places(config)
    places.make()
    ports.require_free(config)
    command = [sys.executable, "-m", "gridline.operate.stack.warden", *(["--tied"] if tied else [])]
    with (places.logs / "warden.log").open("ab") as log:
        # Its own session: the terminal's Ctrl-C is for us, we stop the parts in order.
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=inherited_environment() | dict(added or {}),
        )
    until = time.monotonic() + START_SECONDS_MAX
    while running_pid(config) is None:
        if child.poll() is not None or time.monotonic() > until:
            raise Unavailable(f"The stack did not start: see {places.logs / 'warden.log'}.")
        time.sleep(0.05)
    return child.pid


def wait_until_ready(
    config: Settings, say: Callable[[str], None], *, seconds_max: float = READY_SECONDS_MAX
) -> None:
    """Wait for every part, each reported once with its seconds.

    Raises:
        Unavailable: a part is not ready in time, or the stack ended; says which part and where its log is.
    """
    begin = shown = time.monotonic()
    open_checks = readiness.checks(config)
    missing: dict[str, str] = {}
    while open_checks:
        for check in list(open_checks):
            what = check.missing()
            if what is None:
                open_checks.remove(check)
                missing.pop(check.name, None)
                shown = time.monotonic()
                say(f"  {check.name} ready after {shown - begin:.0f} s")
            else:
                missing[check.name] = what
        passed = time.monotonic() - begin
        if open_checks and (running_pid(config) is None or passed > seconds_max):
            details = "; ".join(f"{name}: {what}" for name, what in missing.items())
            raise Unavailable(f"Not ready after {passed:.0f} s. {details}. Logs: {Places(config).logs}")
        if open_checks and time.monotonic() - shown > SHOW_PROGRESS_SECONDS:
            shown = time.monotonic()
            say(f"  … {passed:.0f} s, waiting for {', '.join(check.name for check in open_checks)}")
        time.sleep(LOOK_SECONDS)


def stop(config: Settings, *, seconds_max: float = STOP_SECONDS_MAX) -> bool:
    """Stop the stack and wait until all of it is gone; False when none ran.

    Raises:
        Unavailable: something was left after ``seconds_max``.
    """
    pid = running_pid(config)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + seconds_max
    while time.monotonic() < until:
        _reap(pid)
        if running_pid(config) is None:
            return True
        time.sleep(0.1)
    raise Unavailable(f"The stack (process {pid}) did not stop within {seconds_max:.0f} s.")


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # another process started it


def require_running(config: Settings) -> None:
    """Refuse where a command needs the stack.

    Raises:
        SettingInvalid: no stack runs in this state folder.
    """
    if running_pid(config) is None:
        raise SettingInvalid("The stack does not run. Start it with 'make up'.")
