"""The GPU job's command: ``python -m gpu_jobs.run '<order>'``; exits with a JobExit.

It knows no database, no money and no Airflow: an order in, objects out.
"""

import asyncio
import ctypes
import signal
import sys

from gpu_jobs.job import Job
from gpu_jobs.logs import Log
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.settings import settings
from gridline.storage import store

_PR_SET_PDEATHSIG = 1


async def _run(order: JobOrder, log: Log) -> JobExit:
    job = Job(order, store(), socket=settings().engines_socket, log=log)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, job.stop.ask, "sigterm")
    return await job.run()


def main(arguments: list[str]) -> JobExit:
    """Run the order; SIGTERM, also when the starter dies, closes what is finished."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    log = Log("gpu-job")
    try:
        return asyncio.run(_run(JobOrder.from_json(arguments[0]), log))
    except Exception as error:  # noqa: BLE001 - the last line of defence: whatever it is must not quote a prompt
        log.crash(error)
        return JobExit.CRASHED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
