"""A GPU job with engines of its own: ``python -m gpu_jobs.alone '<order>'``, all that a container of a cloud's batch runs.

It starts an engine keeper beside the job, on a socket of its own, and leaves nothing behind. It exits as ``gpu_jobs.run``
does, with a JobExit, and like it knows no database, no money and no Airflow: the store's address is all it is told.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpu_jobs import launch, process_groups
from gpu_jobs.logs import Log
from gpu_jobs.run import die_with_starter, run
from gridline.lines.exits import JobExit
from gridline.settings import inherited_environment, settings

KEEPER_STOP_SECONDS = 12
"""Engines get 5 s to end; whoever stops a container kills it 30 s after asking, and the job flushes first."""


@contextmanager
def _engines(log: Log) -> Iterator[Path]:
    """The socket of an engine keeper of this job's own, which ends with the block and takes its engines along."""
    config = settings()
    with tempfile.TemporaryDirectory(prefix="gridline-alone-") as name:
        folder = Path(name)
        socket = folder / "engines.sock"
        # Its own records and logs: it must not take another keeper's engines for leftovers. Models and objects stay.
        told = {
            "GRIDLINE_STATE_DIR": name,
            "GRIDLINE_ENGINE_SOCKET": str(socket),
            "GRIDLINE_MODELS_DIR": str(config.models_folder.absolute()),
            "GRIDLINE_STORE_URL": config.objects_url,
        }
        program = (config.engine_interpreter, "-m", "gpu_jobs.engine_keeper")
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), *program],
            env=inherited_environment() | told,
            stdin=subprocess.DEVNULL,
            # A terminal's Ctrl-C reaches the job only: it flushes, and then ends the engines.
            process_group=0,
        )
        try:
            yield socket
        finally:
            _stop(keeper, log)


def _stop(keeper: "subprocess.Popen[bytes]", log: Log) -> None:
    keeper.terminate()
    try:
        keeper.wait(KEEPER_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        # Its engines get SIGTERM from the kernel.
        log.warning("the engine keeper did not end in time")
    process_groups.send(keeper.pid, signal.SIGKILL)
    keeper.wait()


def main(arguments: list[str]) -> JobExit:
    """Run the order beside engines of its own; SIGTERM, as a cloud sends it, closes what is finished."""
    die_with_starter()
    log = Log("gpu-job")
    # Until the job listens itself, a SIGTERM ends this process by an exception, so that the keeper is ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(JobExit.STOPPED))
    with _engines(log) as socket:
        ended = run(arguments[0], log, socket=socket)
        # How the job ended is known: being asked again must not change it while the engines end.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
