"""The progress object that a GPU job writes and the platform reads: also the attempt's heartbeat. One format, here."""

import json
from dataclasses import asdict, dataclass

FORMAT = 1


@dataclass(frozen=True)
class JobProgress:
    """What a job last wrote. ``done`` and ``failed`` count lines of the partition."""

    state: str
    """loading, running, done, stopped or engine_unhealthy."""
    done: int
    failed: int
    lines: int
    sequence: int
    """Grows with every write: the platform compares it, not clocks."""
    engine_healthy: bool
    engine_version: str | None
    runner_version: str | None
    engine_deaths: int = 0
    """Engines that died while the job used them."""

    def to_bytes(self) -> bytes:
        """The object's content."""
        return json.dumps({"format": FORMAT, **asdict(self)}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "JobProgress":
        """Read an object; KeyError when a part of it is missing."""
        told = json.loads(data)
        # A job that started before an upgrade counts no deaths.
        told.setdefault("engine_deaths", 0)
        return cls(**{name: told[name] for name in cls.__dataclass_fields__})
