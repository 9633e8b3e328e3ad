"""Becomes one program of the stack, tied to the supervisor: `python -m gridline.operate.stack.tether NAME`.

Secrets reach a program from here, so that the supervisor's configuration holds none.
"""

import os
import sys
import time

from gridline.operate.stack.places import Places
from gridline.operate.stack.process_control import die_with_parent
from gridline.operate.stack.programs import INITIALISING, programs
from gridline.settings import ROOT, settings

WAIT_SECONDS = 0.2


def main() -> None:
    """Wait until the program may start, then turn into it; it dies when the supervisor does."""
    die_with_parent()
    config = settings()
    places = Places(config)
    # The supervisor may have died before the line above took effect.
    if os.getppid() != int(places.supervisor_pid.read_text()):
        sys.exit("the supervisor is gone")
    here = programs(config)
    program = here[sys.argv[1]]
    # Where no init runs, it runs on another machine: what it makes is there, or the program is restarted until it is.
    while program.waits and INITIALISING in here and not places.initialised.exists():
        time.sleep(WAIT_SECONDS)
    os.chdir(ROOT)
    os.execve(program.argv[0], program.argv, program.environment())


if __name__ == "__main__":
    main()
