import base64
import json
import struct
from pathlib import Path
from typing import Any

import httpx
import pytest

from gridline.catalog.cards import catalogue
from gridline.operate.engines import wanted
from tests.gpu_jobs.real_engine import real_keeper, run_bodies

MODEL = "all-minilm-l6-v2"
LINES, INPUTS = 100, 100
DIMENSIONS = 384
NEAR = 1e-5
WORDS = ("sea", "rain", "bread", "tax", "moon", "train", "apple", "stone", "music", "winter")


def texts(line: int) -> list[str]:
    """A line's inputs: all ten thousand differ."""
    return [
        f"{WORDS[number % 10]} {WORDS[number // 10]} {line * INPUTS + number}" for number in range(INPUTS)
    ]


def vector(given: Any) -> list[float]:
    """An embedding in either form: numbers, or float32 as base64."""
    if isinstance(given, str):
        return list(struct.unpack(f"<{DIMENSIONS}f", base64.b64decode(given)))
    return list(given)


def direct(socket: Path, inputs: list[str]) -> list[list[float]]:
    """What the engine itself answers, asked past keeper and job."""
    transport = httpx.HTTPTransport(uds=str(socket))
    with httpx.Client(transport=transport, base_url="http://engines") as keeper:
        engine = keeper.post("/engines", json=wanted(catalogue()[MODEL])).json()
    headers = {"Authorization": f"Bearer {engine['api_key']}"}
    asked = {"model": MODEL, "input": inputs}
    answer = httpx.post(
        f"{engine['url']}/v1/embeddings", json=asked, headers=headers, timeout=120, verify=False
    )
    return [one["embedding"] for one in sorted(answer.json()["data"], key=lambda one: one["index"])]


@pytest.mark.engine
@pytest.mark.trial
@pytest.mark.timeout(600)
def test_ten_thousand_vectors_are_the_engines_own(short_path: Path) -> None:
    """Each vector of 100 lines of 100 inputs is what a direct call gives, in input order, as numbers and as base64."""
    bodies: list[dict[str, Any]] = [
        {"input": texts(line), "encoding_format": ("float", "base64")[line % 2]} for line in range(LINES)
    ]
    with real_keeper(short_path, MODEL) as python:
        rows = run_bodies(short_path, python, MODEL, bodies).rows()
        assert [(row.line, row.code) for row in rows] == [(line, None) for line in range(LINES)]
        socket = short_path / "run" / "engines.sock"
        for line, row in enumerate(rows):
            data = json.loads(row.body)["data"]
            assert [one["index"] for one in data] == list(range(INPUTS))
            assert {type(one["embedding"]) for one in data} == {(list, str)[line % 2]}
            found = [vector(one["embedding"]) for one in data]
            asked_directly = direct(socket, texts(line))
            far = max(
                abs(ours - theirs)
                for one, other in zip(found, asked_directly, strict=True)
                for ours, theirs in zip(one, other, strict=True)
            )
            assert far <= NEAR, line
