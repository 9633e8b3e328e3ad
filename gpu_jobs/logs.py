"""JSON log lines of GPU jobs and of the engine keeper; prompts and results never pass here."""

import json
import sys
import traceback
from dataclasses import dataclass, field
from typing import Any

from gridline.clock import Clock, SystemClock


@dataclass(frozen=True)
class Log:
    """Writes one JSON object a line on stdout: at, level, program, message, and bound and given fields."""

    program: str
    bound: dict[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)

    def info(self, message: str, **fields: Any) -> None:
        """What happened: ids, counts and seconds only."""
        self._write("INFO", message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        """What went wrong and was dealt with."""
        self._write("WARNING", message, fields)

    def crash(self, error: BaseException) -> None:
        """An unexpected error: its type and place, never its text, which may quote a prompt."""
        place = [
            f"{one.filename}:{one.lineno} {one.name}" for one in traceback.extract_tb(error.__traceback__)
        ]
        inner = [type(one).__name__ for one in getattr(error, "exceptions", ())]
        self._write("ERROR", "crashed", {"error": type(error).__name__, "inner": inner, "place": place})
        for one in getattr(error, "exceptions", ()):
            self.crash(one)

    def _write(self, level: str, message: str, fields: dict[str, Any]) -> None:
        line = {
            "at": self.clock.now().isoformat(timespec="milliseconds"),
            "level": level,
            "program": self.program,
            "message": message,
            **self.bound,
            **fields,
        }
        sys.stdout.write(json.dumps(line, default=str) + "\n")
        sys.stdout.flush()
