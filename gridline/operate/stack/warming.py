"""Prepares the models that come as packages and starts their engines with the stack, the chat engine first.

A first batch then finds a warm engine. Nothing depends on it: a job asks for its engine itself.
"""

import subprocess
import sys
import time

from gridline.catalog.cards import catalogue
from gridline.errors import Unavailable
from gridline.operate.engines import ready_engine
from gridline.settings import ROOT, settings

WARMED = ("smollm2-135m-instruct", "all-minilm-l6-v2")


def main() -> int:
    """Prepare, then warm; an engine that does not start is a line in the log, for `models qualify` to look into."""
    config = settings()
    if not config.engine_command:
        subprocess.run([config.engine_interpreter, "-m", "gpu_jobs.prepare"], check=True, cwd=ROOT)
    for name in WARMED:
        start = time.monotonic()
        try:
            engine = ready_engine(config, catalogue()[name])
        except Unavailable as error:
            sys.stdout.write(f"{error.message}\n")
            continue
        sys.stdout.write(f"{name}: {engine.version} ready after {time.monotonic() - start:.1f} s\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
