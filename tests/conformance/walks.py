"""Runs the three SDKs' walks at once, each in its own environment and account, and keeps what they print."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridline.settings import ROOT, inherited_environment
from tests.conformance.batch_service import CHAT_ENDPOINT, Service, jsonl

HERE = Path(__file__).parent
OPENAI_SCALARS = ["id", "object", "created_at", "expires_at"]
PATHS = {
    "file": [*OPENAI_SCALARS, "bytes", "filename", "purpose", "status", "status_details"],
    "upload": [
        *OPENAI_SCALARS, "bytes", "filename", "purpose", "status",
        "file.id", "file.bytes", "file.filename", "file.purpose", "file.status",
    ],
    "model": ["id", "object", "created", "owned_by"],
    "batch": [
        *OPENAI_SCALARS, "endpoint", "errors", "input_file_id", "completion_window", "status", "model",
        "output_file_id", "error_file_id", "in_progress_at", "finalizing_at", "completed_at", "failed_at",
        "expired_at", "cancelling_at", "cancelled_at", "metadata",
        "request_counts.total", "request_counts.completed", "request_counts.failed",
        "usage.input_tokens", "usage.input_tokens_details.cached_tokens", "usage.output_tokens",
        "usage.output_tokens_details.reasoning_tokens", "usage.total_tokens",
    ],
    "failed_batch": [
        "status", "failed_at", "output_file_id", "error_file_id", "errors.object",
        "errors.data.0.code", "errors.data.0.message", "errors.data.0.param", "errors.data.0.line",
    ],
}  # fmt: skip
"""What customers' code reads from each object."""


@dataclass(frozen=True)
class Client:
    """An SDK and the command that walks with it."""

    name: str
    command: tuple[str, ...]
    refused_class: str
    """What it raises for a status that has no class of its own."""


_PYTHON_WALK = str(HERE / "clients" / "walk.py")
CLIENTS = (
    Client("openai-python, newest", (str(ROOT / ".venv/bin/python"), _PYTHON_WALK), "APIStatusError"),
    Client(
        "openai-python, 1.60",
        (str(ROOT / ".venv-openai-oldest/bin/python"), "-I", _PYTHON_WALK),
        "APIStatusError",
    ),
    Client(
        "openai-node, newest", (str(ROOT / ".venv/bin/node"), str(HERE / "node" / "walk.mjs")), "APIError"
    ),
)


def lay_out(folder: Path, service: Service) -> None:
    """The files of the walk."""
    good = [service.chat_line("one"), service.chat_line("two", seed=7)]
    texts = [service.embedding_line("one", "A cat sat."), service.embedding_line("two", ["Rain.", "Sun."])]
    bad = [good[0], {"custom_id": "two", "method": "POST", "url": CHAT_ENDPOINT}]
    for name, lines in (("chat", good), ("embeddings", texts), ("bad", bad)):
        (folder / f"{name}.jsonl").write_bytes(jsonl(lines))
    (folder / "paths.json").write_text(json.dumps(PATHS))
    with (folder / "too_large.jsonl").open("wb") as too_large:
        line = jsonl([good[0]])
        too_large.write(line)
        too_large.write(b" " * (service.dialect.file_bytes_max + 1 - len(line)))


def start(client: Client, folder: Path, service: Service, crowded_key: str) -> "subprocess.Popen[bytes]":
    """A walk that runs; the tokens go through its environment only."""
    environment = inherited_environment() | {
        "OPENAI_BASE_URL": service.base_url,
        "OPENAI_API_KEY": service.token,
        "WALK_FOLDER": str(folder),
        "WALK_CHAT": service.chat,
        "WALK_EMBEDDING": service.embedding,
        "WALK_LONGEST_WINDOW": service.dialect.windows[-1],
        "WALK_CROWDED_KEY": crowded_key,
    }
    return subprocess.Popen(client.command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def report(child: "subprocess.Popen[bytes]", *, seconds: float) -> dict[str, Any]:
    """What a walk printed, or how it failed."""
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
    if child.returncode != 0:
        return {"raised": err.decode()[-4000:]}
    return dict(json.loads(out))


def scene(walk: dict[str, Any], name: str) -> dict[str, Any]:
    """What one scene of a walk saw."""
    assert "raised" not in walk, walk["raised"]
    part: dict[str, Any] = walk[name]
    assert "raised" not in part, part["raised"]
    return part


def complete(seen: dict[str, Any]) -> dict[str, Any]:
    """What was seen, with every field there."""
    assert [path for path, value in seen.items() if value == "(missing)"] == []
    return seen
