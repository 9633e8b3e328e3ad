"""Runs one stage of a batch in a process of its own, as production does, and says on its last line what it took.

``python -m tests.faults.measured job '<order>'`` or ``… finish <batch>``.
"""

import json
import sys
import time
from pathlib import Path


def most_megabytes() -> float:
    """The most memory that this process ever had: ``getrusage`` would count the parent that it was forked from."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def job(order: str) -> int:
    """The GPU job's own command."""
    from gpu_jobs.run import main

    return int(main([order]))


def finish(batch_id: str) -> int:
    """What the run's last two tasks do."""
    from gridline.batches import finishing

    finishing.collate(batch_id)
    return 0 if finishing.settle(batch_id) == "completed" else 1


def main() -> int:
    """Run the stage named."""
    stage, argument = sys.argv[1:]
    if stage == "job":
        import gpu_jobs.run  # noqa: F401 - a short stage is not measured by its imports
    else:
        import gridline.batches.finishing
        import gridline.db.every_table  # noqa: F401 - as above
    wall, cpu = time.monotonic(), time.process_time()
    code = {"job": job, "finish": finish}[stage](argument)
    took = {
        "message": "measured",
        "seconds": time.monotonic() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "megabytes": most_megabytes(),
    }
    sys.stdout.write(json.dumps(took) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
