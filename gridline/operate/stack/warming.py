"""Prepares the models that come as packages and starts the chat engine with the stack.

A first batch then finds a warm engine. Nothing depends on it: a job asks for its engine itself. Only one, because a
second engine that starts beside the first batch makes it several times slower on two cores.
"""

import subprocess
import sys
import time

from gridline.catalog.cards import catalogue
from gridline.errors import Unavailable
from gridline.operate.engines import ready_engine
from gridline.settings import ROOT, settings

WARMED = "smollm2-135m-instruct"


def main() -> int:
    """Prepare, then warm; an engine that does not start is a line in the log, for `models qualify` to look into."""
    config = settings()
    if not config.engine_command:
        subprocess.run([config.engine_interpreter, "-m", "gpu_jobs.prepare"], check=True, cwd=ROOT)
    start = time.monotonic()
    try:
        engine = ready_engine(config, catalogue()[WARMED])
    except Unavailable as error:
        sys.stdout.write(f"{error.message}\n")
    else:
        sys.stdout.write(f"{WARMED}: {engine.version} ready after {time.monotonic() - start:.1f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
