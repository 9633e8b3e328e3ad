"""A person's terminal for tests: the `gridline` command in a pseudo-terminal, what it shows, what is typed."""

import os
import pty
import subprocess
import sys
import time
from collections.abc import Mapping

# What runs in a background job inherits that Ctrl-C is ignored; a person's shell ignores it for nobody.
AS_A_PERSON = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from gridline.cli.main import main; main(prog_name='gridline')"
)


class Terminal:
    """A command in a pseudo-terminal of its own, as a person runs it."""

    def __init__(self, variables: Mapping[str, str], *words: str) -> None:
        self._here, there = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", AS_A_PERSON, *words],
            stdin=there, stdout=there, stderr=there, env={**os.environ, "TERM": "xterm", "COLUMNS": "120", **variables}, start_new_session=True,
        )  # fmt: skip
        os.close(there)
        os.set_blocking(self._here, False)
        self.seen = ""

    def until(self, words: str, *, seconds: float = 60) -> None:
        """Read on until it shows these words."""
        limit = time.monotonic() + seconds
        while words not in self.seen:
            assert time.monotonic() < limit, self.seen
            self._read()
            time.sleep(0.02)

    def end(self, *, seconds: float = 60) -> int:
        """Wait for its end and read what is left; its exit status."""
        limit = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < limit, self.seen
            self._read()
            time.sleep(0.02)
        self._read()
        os.close(self._here)
        return self.process.returncode

    def type(self, text: str) -> None:
        """As from a keyboard."""
        os.write(self._here, text.encode())

    def _read(self) -> None:
        try:
            self.seen += os.read(self._here, 1 << 16).decode(errors="replace")
        except (BlockingIOError, OSError):
            # Nothing more for now, or the other end is closed.
            return
