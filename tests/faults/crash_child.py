"""The process whose children die: it imports everything, then forks a child for each line of orders on its input.

It has no connection and no thread itself, so that a fork is clean. Answers, one JSON line each: the child's pid, and
its wait status once it has ended.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from gridline import storage
from gridline.catalog import cards
from gridline.db import every_table, work  # noqa: F401  # every table, so that foreign keys are known
from gridline.storage import Store
from tests.faults import crash_steps
from tests.faults.crash_points import Points
from tests.faults.crash_world import World, model

# What is imported at first use otherwise, in every child: pyarrow imports the first two at the first table.
PRELOADED = (
    "pandas",
    "pyarrow.dataset",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "tokenizers",
    "jinja2",
)
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until the input ends."""
    for name in PRELOADED:
        importlib.import_module(name)
    crash_steps.prepare()
    for line in sys.stdin:
        order = json.loads(line)
        pid = order.get("wait_for") or os.fork()
        if pid == 0:
            _live(order)
        status = os.waitpid(pid, 0)[1] if order.get("wait", True) else None
        sys.stdout.write(json.dumps({"pid": pid, "status": status}) + "\n")
        sys.stdout.flush()


def _live(order: dict[str, Any]) -> NoReturn:
    """A child: take the steps and end, without a word to what was inherited."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)
    world = World.of(Path(order["folder"]))
    try:
        _take(order, world)
    except BaseException:  # noqa: BLE001  # whatever it is, the test reads it
        (world.folder / "error.txt").write_text(traceback.format_exc())
        os._exit(1)
    os._exit(0)


def _take(order: dict[str, Any], world: World) -> None:
    engine = work.make_engine(order["database"])
    work.app_engine = lambda: engine  # type: ignore[assignment]
    work.DatabaseClock = lambda session: world.clock  # type: ignore[assignment,misc,return-value]
    store = Store(world.store_url)
    storage.store = lambda: store  # type: ignore[assignment]
    cards.listed = lambda work: [model(Path(order["journal"]))]
    kill = order.get("kill")
    points = Points(tuple(kill) if kill else None)
    points.watch()
    for step in order["steps"]:
        crash_steps.take(world, step)
    (world.folder / "points.json").write_text(json.dumps(points.reached))


if __name__ == "__main__":
    main()
