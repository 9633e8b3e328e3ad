"""What an entry of catalog.toml must be; says what is wrong in one sentence."""

import re
from collections.abc import Mapping
from typing import Any

from gridline.limits import ADAPTERS_PER_BATCH_MAX
from gridline.lines import endpoints

TYPES: dict[str, type] = {
    "repository": str,
    "commit": str,
    "dtype": str,
    "licence": str,
    "kind": str,
    "endpoints": list,
    "context_tokens": int,
    "output_tokens_max": int,
    "input_price_nanos": int,
    "output_price_nanos": int,
    "engine_arguments": list,
    "partition_tokens": int,
    "offered": bool,
}
BATCH_PRICES = ("batch_input_price_nanos", "batch_output_price_nanos")
OPTIONAL = {
    "dimensions",
    "package",
    "gpu_seconds_per_batch_max",
    "adapters_by_rank",
    "adapter_bytes_max",
    *BATCH_PRICES,
}
ENGINE_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks that an engine can be started for."""


def problem_of(model_id: str, values: Mapping[str, Any]) -> str | None:
    """What makes this entry unusable, naming the key; None when nothing does."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", model_id):
        return "an id is lower-case letters, digits, dots, dashes and underscores, as it names a folder."
    unknown = sorted(values.keys() - TYPES.keys() - OPTIONAL)
    if unknown:
        return f"unknown key {unknown[0]!r}."
    for key, kind in TYPES.items():
        if type(values.get(key)) is not kind:
            return f"{key} must be a {kind.__name__}, got {values.get(key)!r}."
    seconds = values.get("gpu_seconds_per_batch_max")
    if seconds is not None and (type(seconds) is not int or seconds < 1):
        return f"gpu_seconds_per_batch_max must be a number of seconds of at least 1, got {seconds!r}."
    problems = (_length_problem, _kind_problem, _price_problem, _pin_problem, _adapter_problem)
    return next(filter(None, (problem(values) for problem in problems)), None)


def _kind_problem(values: Mapping[str, Any]) -> str | None:
    """Whether endpoints, lengths and dimensions fit the kind."""
    kind = values["kind"]
    served = endpoints.OF_KIND.get(kind)
    if served is None:
        return f"kind must be one of {', '.join(endpoints.OF_KIND)}, got {kind!r}."
    if not values["endpoints"] or not set(values["endpoints"]) <= set(served):
        return f"endpoints of a model of kind {kind} must be among {', '.join(served)}."
    if any(type(argument) is not str for argument in values["engine_arguments"]):
        return "engine_arguments must be texts."
    if kind == "chat" and not 1 <= values["output_tokens_max"] < values["context_tokens"]:
        return "output_tokens_max of a chat model must be at least 1 and below context_tokens."
    dimensions = values.get("dimensions")
    if kind == "embedding" and (type(dimensions) is not int or dimensions < 1):
        return "an embedding model needs dimensions, a number of at least 1."
    return None


def _length_problem(values: Mapping[str, Any]) -> str | None:
    """Whether every length is a length."""
    for key in ("context_tokens", "partition_tokens"):
        if values[key] < 1:
            return f"{key} must be at least 1, got {values[key]}."
    return None


def _price_problem(values: Mapping[str, Any]) -> str | None:
    """Whether every price is exact, at the full rate and at half of it."""
    for key in ("input_price_nanos", "output_price_nanos"):
        if values[key] < 0 or values[key] % 2:
            return f"{key} must be an even whole number of nano-credits of at least 0, got {values[key]}."
    for key in BATCH_PRICES:
        price = values.get(key)
        if price is not None and (type(price) is not int or price < 0):
            return f"{key} must be a whole number of nano-credits of at least 0, got {price!r}."
    if values["kind"] == "embedding" and (
        values["output_price_nanos"] or values.get("batch_output_price_nanos")
    ):
        return "output_price_nanos of an embedding model must be 0: only input is charged."
    return None


def _pin_problem(values: Mapping[str, Any]) -> str | None:
    """Whether the weights are pinned: a full commit, or the package's version for weights from a package."""
    package = values.get("package")
    if package is not None and not re.fullmatch(r"[a-z0-9-]+==[0-9.]+", str(package)):
        return f"package must be a name==version, got {package!r}."
    if package is not None and values["commit"] != package:
        return "commit of a model from a package must repeat package, which pins it."
    if package is None and values["offered"] and not re.fullmatch("[0-9a-f]{40}", values["commit"]):
        return f"commit of an offered model must be 40 hexadecimal digits, got {values['commit']!r}."
    return None


def _adapter_problem(values: Mapping[str, Any]) -> str | None:
    """Whether the adapters it says it serves are few enough, and of ranks that an engine takes."""
    pairs = values.get("adapters_by_rank", [])
    shape = type(pairs) is list and all(
        type(pair) is list and [type(one) for one in pair] == [int, int] for pair in pairs
    )
    if not shape:
        return f"adapters_by_rank must be pairs of highest rank and adapters, got {pairs!r}."
    if not pairs:
        return None
    ranks, counts = [rank for rank, _ in pairs], [count for _, count in pairs]
    if ranks != sorted(set(ranks)) or not set(ranks) <= set(ENGINE_RANKS):
        return (
            f"adapters_by_rank must have rising ranks among {', '.join(map(str, ENGINE_RANKS))}, got {ranks}."
        )
    if not all(1 <= count <= ADAPTERS_PER_BATCH_MAX for count in counts):
        return f"adapters_by_rank must allow 1 to {ADAPTERS_PER_BATCH_MAX} adapters at a rank, got {counts}."
    if values["kind"] != "chat":
        return "adapters_by_rank is for chat models only."
    most = values.get("adapter_bytes_max")
    return None if type(most) is int and most >= 1 else f"adapter_bytes_max must be at least 1, got {most!r}."
