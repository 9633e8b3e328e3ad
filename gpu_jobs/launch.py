"""Starts a program that gets SIGTERM when its starter dies: ``launch.py <starter's pid> <program> <arguments>``.

Run as a bare script (``python -I -S``), so it must import nothing of ours. The kernel sends the signal when
the starting *thread* ends: start long-lived programs from the main thread.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Ask for the signal, make sure that the starter still lives, and become the program."""
    starter, program = int(arguments[0]), arguments[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != starter:
        sys.exit(1)
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
