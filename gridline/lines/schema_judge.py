"""Judges schemas in a process that may be killed: knows the limits and the verdicts, leaves the work to schema_trial.py."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gridline.limits import SCHEMA_JUDGE_BYTES_MAX, SCHEMA_JUDGED_SECONDS_MAX, SCHEMAS_OF_FILE_SECONDS_MAX
from gridline.lines.errors import JudgeUnavailable
from gridline.lines.schema_bounds import bound_problem_of

PROGRAM = "gridline.lines.schema_trial"
READY = b"ready\n"
"""What the child writes first."""
BYTES = "byte"
"""The tokenizer to name where a model's own is missing: one token a byte."""
START_SECONDS_MAX = 60
READ_BYTES = 4_096
COSTLY = (
    "pattern",
    "patternProperties",
    "multipleOf",
    "allOf",
    "anyOf",
    "oneOf",
    "enum",
    "$ref",
    "properties",
)
TOO_MANY = (
    f"all the schemas of a file together have {SCHEMAS_OF_FILE_SECONDS_MAX} seconds to be judged, and those before it "
    "took them. Put fewer different schemas into a file, or simpler ones."
)


class SchemaJudge:
    """The verdicts on one file's schemas; each schema is judged once, in a child that starts with the first.

    A context manager: leaving it ends the child.
    """

    def __init__(self, tokenizer: Path | None = None) -> None:
        """``tokenizer`` is the model's file, if this machine has it: masks depend on the tokens that there are."""
        self.tokenizer = tokenizer
        self._known: dict[bytes, str | None] = {}
        self._seconds_left: float = SCHEMAS_OF_FILE_SECONDS_MAX
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def problem_of(self, text: str) -> str | None:
        """Why the engine cannot take the schema (JSON on one line), naming the keyword; None when it can.

        Raises:
            JudgeUnavailable: the process that judges cannot be started.
        """
        # Digests, because a file's schemas together may be as large as the file.
        digest = blake2b(text.encode(), digest_size=16).digest()
        if digest not in self._known:
            self._known[digest] = bound_problem_of(text) or self._tried(text)
        return self._known[digest]

    def _tried(self, text: str) -> str | None:
        """The verdict of the child, in what is left of the file's time."""
        if self._seconds_left <= 0:
            return TOO_MANY
        started = time.monotonic()
        problem = self._judged(text)
        self._seconds_left -= time.monotonic() - started
        return problem

    def _judged(self, text: str) -> str | None:
        """The child's verdict, or what its end says."""
        begun = time.monotonic()
        child = self._child or self._started()
        # Starting the child is the file's time too.
        seconds = min(SCHEMA_JUDGED_SECONDS_MAX, self._seconds_left - (time.monotonic() - begun))
        answer = _asked(child, text, time.monotonic() + seconds)
        if answer is not None:
            problem: str | None = json.loads(answer)
            return problem
        code = self._end()
        costly = costly_keywords(json.loads(text))
        if code not in {-signal.SIGKILL, -signal.SIGXCPU}:
            return f"judging it takes more than the limit of {SCHEMA_JUDGE_BYTES_MAX >> 20} MiB: {costly}."
        if seconds < SCHEMA_JUDGED_SECONDS_MAX:
            return TOO_MANY
        return f"judging it takes more than the limit of {SCHEMA_JUDGED_SECONDS_MAX} seconds: {costly}."

    def _started(self) -> subprocess.Popen[bytes]:
        """A child that is ready."""
        child = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, str(os.getpid()), str(self.tokenizer or BYTES)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            env={},  # it needs nothing of ours, and reads what strangers wrote
        )  # fmt: skip
        self._child = child
        if _line(child, time.monotonic() + START_SECONDS_MAX) != READY:
            self._end()
            raise JudgeUnavailable("The process that judges JSON schemas does not start on this machine.")
        return child

    def _end(self) -> int:
        """Kill and reap the child; its exit code, which is negative when a signal ended it."""
        if self._child is None:
            return 0
        with self._child as child:  # leaving it closes the pipes
            child.kill()
            self._child = None
            return child.wait()


def costly_keywords(schema: Any) -> str:
    """Words that name what in the schema takes time and memory to prepare."""
    text = json.dumps(schema)
    found = [f"'{keyword}'" for keyword in COSTLY if f'"{keyword}":' in text]
    return f"simplify {', '.join(found[:4])}" if found else "simplify it"


def _asked(child: subprocess.Popen[bytes], text: str, until: float) -> bytes | None:
    """The child's line on this schema; None when it ended, or did not answer until then."""
    rest = memoryview(text.encode() + b"\n")
    try:
        while rest and child.stdin:
            rest = rest[child.stdin.write(rest) :]
    except BrokenPipeError:
        return None
    return _line(child, until)


def _line(child: subprocess.Popen[bytes], until: float) -> bytes | None:
    """What the child writes up to a line's end, if it comes until then."""
    found = b""
    while child.stdout and not found.endswith(b"\n"):
        ready, _, _ = select.select([child.stdout], [], [], max(0, until - time.monotonic()))
        more = child.stdout.read(READ_BYTES) if ready else b""
        if not more:
            return None
        found += more
    return found
