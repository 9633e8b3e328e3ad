"""One small platform in a folder, as the processes of a crash test find it: what is known, and an Airflow that lasts."""

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from gridline.catalog.cards import ModelCard
from gridline.clock import FrozenClock
from gridline.keeper.airflow import Airflow
from tests.gridline.keeper.fake_airflow import FakeAirflow
from tests.gridline.lines.conftest import card

LINES = 64
REFUSED = 1
ENGINE_FAILS = 2
"""Of the 64 lines one is refused at validation and two by the engine."""
NEIGHBOUR_LINES = 4
START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def model(journal: Path) -> ModelCard:
    """A model with a price and a small context; its stub engine writes down what it is asked."""
    arguments = ("--journal", str(journal))
    return card("tiny-chat", context_tokens=512, partition_tokens=900, engine_arguments=arguments)


def lines(count: int, *, slow: bool = False, bad: bool = False) -> bytes:
    """A file of requests; ``slow`` ones are answered one after another, ``bad`` makes the last one wrong."""
    rows = []
    for number in range(count):
        text = f"say {number:02d} " + (f"!sleep={(number + 1) / 20} " if slow else "")
        if count == LINES:
            text += {5: "x" * 600, 17: "!overlong", 49: "!overlong"}.get(number, "")
        body = {"model": "tiny-chat", "max_tokens": 8, "messages": [{"role": "user", "content": text}]}
        url = "/v1/embeddings" if bad and number == count - 1 else "/v1/chat/completions"
        rows.append({"custom_id": f"c{number:02d}", "method": "POST", "url": url, "body": body})
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


class LastingAirflow(FakeAirflow):
    """A fake Airflow whose runs are in the world's file: it is another process, and does not die with its caller."""

    world: "World"

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer, and remember before the caller hears of it."""
        answer = super().answer(request)
        self.world.save()
        return answer


@dataclass
class World:
    """What processes share beside the database and the store."""

    folder: Path
    values: dict[str, Any] = field(default_factory=dict)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    clock: FrozenClock = field(default_factory=lambda: FrozenClock(START))

    @classmethod
    def of(cls, folder: Path) -> "World":
        """The world as it was left."""
        world = cls(folder)
        path = folder / "world.json"
        if path.exists():
            told = json.loads(path.read_text())
            world.values, world.runs = told["values"], told["runs"]
            world.clock.moment = datetime.fromisoformat(told["now"])
        return world

    def save(self) -> None:
        """Leave it to the next process."""
        told = {"values": self.values, "runs": self.runs, "now": self.clock.moment.isoformat()}
        path = self.folder / "world.json"
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(told))
        new.replace(path)

    @property
    def batch_id(self) -> str:
        """The customer's batch."""
        return str(self.values["batch"])

    @property
    def store_url(self) -> str:
        """Where its objects are."""
        return (self.folder / "objects").as_uri()

    def airflow(self) -> Airflow:
        """The keeper's client of the world's Airflow."""
        fake = LastingAirflow(runs=self.runs)
        fake.world = self
        return fake.client()
