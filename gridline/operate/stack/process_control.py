"""Linux process control that Python lacks: die with the parent, adopt orphans. Knows no program of ours."""

import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(sent: signal.Signals = signal.SIGTERM) -> None:
    """Have the kernel send this signal to this process when its parent ends, however it ends."""
    _control(_PR_SET_PDEATHSIG, sent)


def adopt_orphans() -> None:
    """Make descendants whose parent ends children of this process instead of the init process's."""
    _control(_PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int | None = None) -> list[int]:
    """Direct children of a process (this one by default), zombies included."""
    me = pid or os.getpid()
    return [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _parent(entry) == me
    ]


def descendants(pid: int | None = None) -> list[int]:
    """Every process below one, from one look at the process table."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            below.setdefault(parent, []).append(int(entry.name))
    found, open_ends = [], [pid or os.getpid()]
    while open_ends:
        more = below.get(open_ends.pop(), [])
        found += more
        open_ends += more
    return found


def _parent(entry: Path) -> int | None:
    try:
        # The name in parentheses may itself hold spaces and parentheses.
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None  # it ended while we looked


def _control(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
