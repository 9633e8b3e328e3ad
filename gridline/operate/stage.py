"""One file through what a batch's lines go through, without a batch: the check, one partition, the real GPU job.

For qualification and benches. Everything is written to a store of its own in a folder that the caller throws away.
"""

import subprocess
from dataclasses import replace
from pathlib import Path

from gridline.catalog.cards import ModelCard
from gridline.errors import Unavailable
from gridline.lines.checking import check_file
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.lines.rules import Rules
from gridline.lines.segments import ResultRow, read_rows
from gridline.settings import ROOT, Settings, job_environment
from gridline.storage import layout
from gridline.storage.objects import Store

SAID_CHARS_MAX = 2_000


class Stage:
    """Files of one model's lines, each as one partition on the engine that the host's engine keeper keeps warm."""

    def __init__(self, config: Settings, card: ModelCard, folder: Path) -> None:
        self._config = config
        # However many tokens: what is wanted is the stage, not where a batch is cut.
        self._card = replace(card, partition_tokens=10**12)
        self._url = folder.absolute().as_uri()
        self._store = Store(self._url)
        self._files = 0

    def order(self, data: bytes, *, endpoint: str) -> JobOrder:
        """Check the file and cut it into the one partition of an order.

        Raises:
            Unavailable: a line of it is wrong.
        """
        self._files += 1
        batch_id = f"batch_stage{self._files}"
        key = layout.file_key("stage", f"file_stage{self._files}")
        with self._store.writer(key) as out:
            out.write(data)
        found = check_file(
            self._store,
            Rules(endpoint, {self._card.id: self._card}),
            file_key=key,
            batch_id=batch_id,
            models_folder=self._config.models_folder,
        )
        if found.errors or not found.partitions:
            raise Unavailable(f"The file cannot be run: {found.errors[:3]}")
        prefix = layout.attempt_prefix(batch_id, 0, 1, "lease_stage")
        return JobOrder(spec_key=layout.partition_spec_key(batch_id, 0), attempt_prefix=prefix)

    def run(self, order: JobOrder) -> list[ResultRow]:
        """Run the GPU job as the process that it is in production; its rows, by line.

        Raises:
            Unavailable: it did not end well.
        """
        environment = job_environment() | {
            "GRIDLINE_STATE_DIR": str(self._config.state_dir),
            "GRIDLINE_STORE_URL": self._url,
            "GRIDLINE_ENGINE_SOCKET": str(self._config.engines_socket),
        }
        command = [self._config.engine_interpreter, "-m", "gpu_jobs.run", order.to_json()]
        job = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
        if job.returncode != JobExit.DONE:
            said = (job.stdout + job.stderr)[-SAID_CHARS_MAX:]
            raise Unavailable(f"The GPU job ended with {job.returncode}: {said}")
        segments = [key for key in self._store.list(order.attempt_prefix) if layout.is_segment(key)]
        rows = [row for key in segments for row in read_rows(self._store.read(key))]
        return sorted(rows, key=lambda row: row.line)
