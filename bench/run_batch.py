"""vLLM's own `run_batch` with the engine that Gridline would start: `python -m bench.run_batch MODEL INPUT OUTPUT`.

Run by the engine's Python, which knows whether it is a CPU's or a GPU's. MODEL is what the engine keeper is told, as JSON.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from gpu_jobs import engine_start


def main(arguments: list[str]) -> None:
    """Become `run_batch`: the same model folder, flags and environment, no server around it."""
    model, source, target = json.loads(arguments[0]), arguments[1], arguments[2]
    folder = Path(tempfile.mkdtemp(prefix="run-batch-", dir=Path(target).parent))
    program = [
        *(sys.executable, "-W", "ignore::DeprecationWarning", "-m", "vllm.entrypoints.openai.run_batch"),
        *engine_start.engine_arguments(model),
        *("-i", source, "-o", target),
    ]
    additions = {"PYTHONUNBUFFERED": "1"}
    os.execve(program[0], program, engine_start.environment("none", folder) | additions)


if __name__ == "__main__":
    main(sys.argv[1:])
