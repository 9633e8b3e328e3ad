"""Looks at and ends process groups through /proc; knows nothing of engines."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

LOOK_AGAIN_SECONDS = 0.05


def members(group: int) -> dict[int, int]:
    """Living processes of a group: pid to start time (kernel ticks since boot), which a reused pid lacks."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            state, its_group, start = _stat(int(entry.name))
            if its_group == group and state not in "ZX":
                found[int(entry.name)] = start
    return found


def start_time(pid: int) -> int:
    """When a process began, in kernel ticks since boot; 0 when there is none."""
    return _stat(pid)[2]


def shared_memory(pids: list[int]) -> set[str]:
    """Shared-memory files that these processes have mapped: killed owners leave them behind."""
    found = set()
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                name = line.partition("/dev/shm/")[2]  # noqa: S108 - the kernel's name of it, not a temporary file
                if name and not name.endswith("(deleted)"):
                    found.add(name)
    return found


def send(group: int, number: signal.Signals) -> None:
    """Signal every process of a group; none is fine."""
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def gone(group: int, seconds: float) -> bool:
    """Wait until nothing of a group lives; whether that came true in time."""
    until = time.monotonic() + seconds
    while members(group):
        if time.monotonic() > until:
            return False
        time.sleep(LOOK_AGAIN_SECONDS)
    return True


def _stat(pid: int) -> tuple[str, int, int]:
    """State, process group and start time; the command's name may hold anything, so cut after its bracket."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "X", 0, 0
    return fields[0], int(fields[2]), int(fields[19])
