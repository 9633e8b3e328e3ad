"""Runs the supervisor and answers for what it leaves: `python -m gridline.operate.stack.warden [--tied]`.

The supervisor stops its programs' process groups. A process that left its group, or whose parent was killed, becomes
this process's child and is stopped too, so that no death of any part leaves anything behind.
"""

import argparse
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import TextIO

from gridline.errors import GridlineError
from gridline.operate import secrets
from gridline.operate.stack import process_control, supervision
from gridline.operate.stack.places import Places
from gridline.operate.stack.programs import INITIALISING, programs
from gridline.settings import ROOT, Settings, settings

LOOK_SECONDS = 0.5
LOCK_TRIES = 25
ORPHAN_GRACE_SECONDS = 15
"""From SIGTERM to SIGKILL: a GPU job needs up to 10 s to flush."""


class Warden:
    """One supervisor and everything below it."""

    def __init__(self, config: Settings) -> None:
        self._config = config
        self._places = Places(config)
        self._stopping = False
        self._supervisor = 0
        self._told: dict[int, float] = {}

    def run(self, *, tied: bool) -> int:
        """Start the supervisor and stay until nothing is left; returns the exit status.

        Args:
            tied: stop when the process that started us ends.
        """
        if tied:
            process_control.die_with_parent()
        process_control.adopt_orphans()
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(one, self._stop)
        self._places.initialised.unlink(missing_ok=True)
        self._places.trouble.unlink(missing_ok=True)
        if INITIALISING in programs(self._config):
            # Elsewhere they are read, perhaps from where nothing can be written.
            secrets.make(self._config)
        supervision.write(self._config)
        command = [
            sys.executable,
            "-m",
            "supervisor.supervisord",
            "-n",
            "-c",
            str(self._places.configuration),
        ]
        self._supervisor = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            preexec_fn=process_control.die_with_parent,  # noqa: PLW1509  # no threads here
        ).pid
        while self._supervisor in process_control.children():
            self._reap()
            self._end_orphans()
            time.sleep(LOOK_SECONDS)
        self._end_all()
        self._places.initialised.unlink(missing_ok=True)
        return 0 if self._stopping else 1

    def _stop(self, *_: object) -> None:
        self._stopping = True
        if self._supervisor:
            _tell(self._supervisor, signal.SIGTERM)

    def _reap(self) -> None:
        """Take in every child that has ended, ours or adopted."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._told.pop(pid, None)

    def _end_orphans(self) -> None:
        self._end(pid for pid in process_control.children() if pid != self._supervisor)

    def _end_all(self) -> None:
        """Stop what outlived the supervisor, however deep it stands, and wait until nothing is left."""
        while process_control.children():
            self._end(process_control.descendants())
            self._reap()
            time.sleep(LOOK_SECONDS / 5)

    def _end(self, pids: Iterable[int]) -> None:
        """Ask each once, and force it when its patience is over."""
        for pid in pids:
            if pid not in self._told:
                self._told[pid] = time.monotonic()
                _tell(pid, signal.SIGTERM)
            elif time.monotonic() - self._told[pid] > ORPHAN_GRACE_SECONDS:
                _tell(pid, signal.SIGKILL)


def _take(lock: TextIO) -> None:
    """Take the lock; one who only asks whether it is taken holds it for an instant, so one refusal is no answer."""
    for _ in range(LOCK_TRIES - 1):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _tell(pid: int, sent: signal.Signals) -> None:
    try:
        os.kill(pid, sent)
    except ProcessLookupError:
        return  # it ended meanwhile


def main() -> int:
    """Be the warden of this state folder, unless another one is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tied", action="store_true")
    options = parser.parse_args()
    config = settings()
    places = Places(config)
    try:
        places.make()
        with places.lock.open("a+") as lock:
            _take(lock)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            return Warden(config).run(tied=options.tied)
    except BlockingIOError:
        sys.stderr.write(f"A stack already runs in {places.state}.\n")
    except GridlineError as error:
        sys.stderr.write(f"{error.message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
