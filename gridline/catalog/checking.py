"""What an entry of catalog.toml must be; says what is wrong in one sentence."""

import re
from collections.abc import Mapping
from typing import Any

ENDPOINTS = {"chat": ("/v1/chat/completions",), "embedding": ("/v1/embeddings",)}

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
OPTIONAL = {"dimensions", "package", "gpu_seconds_per_batch_max"}


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
    return _length_problem(values) or _kind_problem(values) or _price_problem(values) or _pin_problem(values)


def _kind_problem(values: Mapping[str, Any]) -> str | None:
    """Whether endpoints, lengths and dimensions fit the kind."""
    kind = values["kind"]
    if kind not in ENDPOINTS:
        return f"kind must be one of {', '.join(ENDPOINTS)}, got {kind!r}."
    if not values["endpoints"] or not set(values["endpoints"]) <= set(ENDPOINTS[kind]):
        return f"endpoints of a model of kind {kind} must be among {', '.join(ENDPOINTS[kind])}."
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
    if values["kind"] == "embedding" and values["output_price_nanos"]:
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
