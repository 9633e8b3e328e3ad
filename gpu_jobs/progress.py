"""Writes the progress object, which is also the heartbeat, and reads the stop marker that answers it."""

import json
from dataclasses import dataclass, field

from gpu_jobs.results import Results
from gridline import __version__
from gridline.lines.progress import JobProgress
from gridline.storage import Store, layout


@dataclass
class Progress:
    """What the platform sees of a running job."""

    store: Store
    prefix: str
    lines: int
    results: Results
    state: str = "loading"
    engine_healthy: bool = False
    engine_version: str | None = None
    engine_deaths: int = 0
    _sequence: int = field(default=0, init=False)

    def beat(self) -> None:
        """Write the object; the platform compares its sequence, not clocks."""
        self._sequence += 1
        told = JobProgress(
            state=self.state,
            done=self.results.done,
            failed=self.results.failed,
            lines=self.lines,
            sequence=self._sequence,
            engine_healthy=self.engine_healthy,
            engine_version=self.engine_version,
            runner_version=__version__,
            engine_deaths=self.engine_deaths,
        )
        self.store.replace(layout.progress_key(self.prefix), told.to_bytes())

    def stop_reason(self) -> str | None:
        """Why the platform wants the job to stop; None: it does not."""
        marker = self.store.read_or_none(layout.stop_key(self.prefix))
        return None if marker is None else str(json.loads(marker)["reason"])
