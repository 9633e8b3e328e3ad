"""`make demo` as a stranger sees it: what it prints, and that Ctrl-C leaves nothing behind."""

import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from gridline.operate.stack.process_control import descendants
from gridline.settings import ROOT
from tests.stack import command_of, new_environment

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]

STAYS_UP = "stays up until Ctrl-C"


class Demo:
    """A running demo and what it has printed."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gridline.operate.demo"],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.text = ""
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as said:
            for line in said:
                self._lines.put(line)
        self._lines.put(None)

    def read_until(self, wanted: str, *, seconds: float) -> None:
        """Read on until a line holds this, or fail with all that was said."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                line = self._lines.get(timeout=1)
            except queue.Empty:
                continue
            if line is None:
                break
            self.text += line
            if wanted in line:
                return
        pytest.fail(f"the demo never said {wanted!r}:\n{self.text}")


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    """One demo that has reached its end and stays up."""
    with new_environment() as environment:
        one = Demo(environment)
        try:
            one.read_until(STAYS_UP, seconds=600)
            yield one
        finally:
            if one.process.poll() is None:
                one.process.terminate()
            one.process.wait(180)
            one.reader.join(10)


def test_the_demo_shows_answers_money_and_leaves_nothing(demo: Demo) -> None:
    """Paris, four embeddings, two receipts, balances, addresses, seconds; after Ctrl-C no process is left."""
    said = demo.text
    for number in range(1, 9):
        assert f"chat-{number}: " in said
    assert "Paris" in said
    assert said.count("384 numbers") >= 4
    assert said.count("receipt: ") == 2
    for word in ("Balance before", "Balance after", "First result", "/openai/v1", "dashboard", "Airflow"):
        assert word in said
    alive = [psutil.Process(pid) for pid in descendants(demo.process.pid)]
    commands = [command_of(one) for one in alive]
    assert [one for one in commands if "vllm" in one], "engine children count too"
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(120) == 130
    left = [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    assert left == []
