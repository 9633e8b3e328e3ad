"""The GPU job's command: ``python -m gpu_jobs.run '<order>'``; exits with a JobExit.

It knows no database, no money and no Airflow: an order in, objects out.
"""

import asyncio
import ctypes
import signal
import sys
from pathlib import Path

from gpu_jobs.job import Job
from gpu_jobs.logs import Log
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.settings import settings
from gridline.storage import store

_PR_SET_PDEATHSIG = 1


async def _run(order: JobOrder, log: Log, *, socket: Path) -> JobExit:
    job = Job(order, store(), socket=socket, log=log)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, job.stop.ask, "sigterm")
    return await job.run()


def run(order_json: str, log: Log, *, socket: Path) -> JobExit:
    """Run the order on the engines behind this socket; SIGTERM closes what is finished."""
    try:
        return asyncio.run(_run(JobOrder.from_json(order_json), log, socket=socket))
    except Exception as error:  # noqa: BLE001 - the last line of defence: whatever it is must not quote a prompt
        log.crash(error)
        return JobExit.CRASHED


def die_with_starter() -> None:
    """SIGTERM when the starter dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def main(arguments: list[str]) -> JobExit:
    """Run the order on this host's engines; SIGTERM, also when the starter dies, closes what is finished."""
    die_with_starter()
    return run(arguments[0], Log("gpu-job"), socket=settings().engines_socket)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
