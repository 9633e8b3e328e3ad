"""Runs one GPU job as a child process in a group of its own and passes its log on. Knows no batch and no Airflow."""

import ctypes
import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.settings import ROOT, job_environment, settings

STOP_SECONDS = 3.0
"""From SIGTERM (the job closes its segments) to SIGKILL; Airflow itself kills a task 5 s after asking."""
WATCH_SECONDS = 5.0
LOG_CHARS_MAX = 4_000
_PR_SET_PDEATHSIG = 1


class JobProcess:
    """One GPU job in the engine environment. It dies with this process, and leaves nothing of its group behind."""

    def __init__(self, order: JobOrder) -> None:
        parent = os.getpid()
        self._child = subprocess.Popen(
            [settings().engine_interpreter, "-m", "gpu_jobs.run", order.to_json()],
            cwd=ROOT,
            env=job_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            process_group=0,
            preexec_fn=lambda: _die_with(parent),  # noqa: PLW1509  # one system call; a task process has no threads
        )

    def follow(self, log: logging.Logger, *, wanted: Callable[[], bool] = lambda: True) -> JobExit:
        """Pass the job's log lines on until it ends; how it ended.

        ``wanted`` is asked every few seconds in a thread: a job that hangs, or stands still, neither ends nor hears a
        stop marker, so it is ended from here as soon as its lease is gone.
        """
        over = threading.Event()
        watch = threading.Thread(target=self._stop_unwanted, args=(log, wanted, over), daemon=True)
        watch.start()
        if self._child.stdout is not None:
            with self._child.stdout as lines:
                for line in lines:
                    forward(line, log)
        code = self._child.wait()
        over.set()
        watch.join()
        self._signal(signal.SIGKILL)
        ended = JobExit.of(code)
        log.info("The GPU job ended: %s (exit code %s).", ended.name, code)
        return ended

    def _stop_unwanted(self, log: logging.Logger, wanted: Callable[[], bool], over: threading.Event) -> None:
        while not over.wait(WATCH_SECONDS):
            if not wanted():
                log.warning("The job's lease is gone and it has not ended by itself: it is stopped.")
                self.stop()
                return

    def stop(self) -> None:
        """Ask the job to flush and end, then end its whole group. Safe in a signal handler, and twice."""
        self._signal(signal.SIGTERM)
        until = time.monotonic() + STOP_SECONDS
        while self._child.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # The group's id is the child's; nobody else can get it while a member lives.
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, number)


def forward(line: str, log: logging.Logger) -> None:
    """Log one line of a job: its JSON object's level, message and ids, or the text as it is."""
    text = line.rstrip()[:LOG_CHARS_MAX]
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        if text:
            log.info("%s", text)
        return
    level = logging.getLevelNamesMapping().get(str(entry.pop("level", "INFO")).upper(), logging.INFO)
    message = str(entry.pop("message", entry.pop("event", "")))[:LOG_CHARS_MAX]
    rest = " ".join(
        f"{name}={value}" for name, value in entry.items() if name not in ("at", "logger", "program")
    )
    log.log(level, "%s", f"{message} {rest}".strip()[:LOG_CHARS_MAX])


def _die_with(parent: int) -> None:
    """Between fork and exec: SIGTERM when the task process dies, also if it died this very moment."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(JobExit.STOPPED)
