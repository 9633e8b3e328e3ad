"""What is on disk about every running engine, so that its leftovers can be ended after a crash of the keeper."""

import json
import shutil
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from gpu_jobs import process_groups
from gridline.limits import ENGINE_STOP_SECONDS_MAX


@dataclass
class EngineRecord:
    """One engine's process group and the files that it may leave."""

    instance: str
    model: str
    group: int
    members: dict[int, int]
    """Pid to start time, as last seen: tells our processes from later ones with the same numbers."""
    folder: str
    """Its own temporary folder."""
    shared_memory: list[str]

    def look(self) -> bool:
        """See who is in the group now; whether that differs from before."""
        now = process_groups.members(self.group)
        shared = sorted(process_groups.shared_memory(list(now)) | set(self.shared_memory))
        changed = (now, shared) != (self.members, self.shared_memory)
        self.members, self.shared_memory = now, shared
        return changed

    def lives(self) -> bool:
        """Whether a process that we recorded still runs in that group."""
        now = process_groups.members(self.group)
        return any(now.get(pid) == start for pid, start in self.members.items())

    def end(self) -> None:
        """Kill what lives of the group, and remove what killed processes leave behind."""
        if self.lives():
            process_groups.send(self.group, signal.SIGKILL)
            process_groups.gone(self.group, ENGINE_STOP_SECONDS_MAX)
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in self.shared_memory:
            with suppress(OSError):
                (Path("/dev/shm") / name).unlink()  # noqa: S108 - the kernel's place of it


class Records:
    """The folder of records, one JSON file an engine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def write(self, record: EngineRecord) -> None:
        """Note the engine as it is now."""
        path = self._path(record.instance)
        part = path.with_suffix(".part")
        part.write_text(json.dumps({"format": 1, **asdict(record)}))
        part.replace(path)

    def remove(self, record: EngineRecord) -> None:
        """Forget an engine that has ended."""
        self._path(record.instance).unlink(missing_ok=True)

    def end_leftovers(self) -> list[str]:
        """End every recorded engine, of a keeper that died, and say which models they served."""
        models = []
        for path in sorted(self._folder.glob("*.json")):
            with suppress(ValueError, KeyError, TypeError):
                fields = json.loads(path.read_text())
                fields.pop("format")
                members = {int(pid): start for pid, start in fields.pop("members").items()}
                EngineRecord(members=members, **fields).end()
                models.append(str(fields["model"]))
            path.unlink(missing_ok=True)
        return models

    def _path(self, instance: str) -> Path:
        return self._folder / f"{instance}.json"
