"""Checks a fine-tuned model as PEFT writes it: its configuration, and the header of its weights, which are never loaded.

What passes holds numbers only (safetensors, no pickle), for modules of the base's layers, in the shapes that they have.
"""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from gridline.catalog.errors import AdapterInvalid

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
CONFIG_BYTES_MAX = 1 << 20
HEADER_BYTES_MIN, HEADER_BYTES_MAX = len("{}"), 16 << 20
MODULES = {
    **dict.fromkeys(("q_proj", "k_proj", "v_proj", "o_proj"), "self_attn"),
    **dict.fromkeys(("gate_proj", "up_proj", "down_proj"), "mlp"),
}
"""Modules that an engine adapts, by the part of a layer that they are in."""
NAME = re.compile(
    r"base_model\.model\.model\.layers\.(\d{1,4})\.(self_attn|mlp)\.([a-z]+_proj)\.lora_([AB])\.weight"
)
DTYPE_BYTES = {"BF16": 2, "F16": 2, "F32": 4}
PLAIN_STARTS = {"gaussian", "eva", "orthogonal", "mica", "lora_ga"}
"""Values of init_lora_weights, besides true and false, that leave the base's weights as they are."""
NOT_TAKEN = (
    "modules_to_save", "use_dora", "lora_bias", "layer_replication", "alora_invocation_tokens", "use_bdlora", "use_qalora",
    "rank_pattern", "alpha_pattern", "trainable_token_indices", "target_parameters", "megatron_config",
)  # fmt: skip
"""Keys of a configuration that change what an adapter is, in ways that the engine cannot follow."""
FOUR_BIT = re.compile(r"4[-_]?bit|bnb|qlora|nf4", re.IGNORECASE)


def read_config(path: Path, rank_max: int) -> dict[str, Any]:
    """The configuration with the keys that an engine reads, and no other.

    Raises:
        AdapterInvalid: it is missing, no LoRA configuration, or asks for what the engine cannot do.
    """
    values = _json(path)
    kind = values.get("peft_type")
    if kind != "LORA":
        raise AdapterInvalid(
            f"{CONFIG}: peft_type must be LORA, got {kind!r}. Only LoRA adapters can be served."
        )
    rank = values.get("r")
    if type(rank) is not int or not 1 <= rank <= rank_max:
        raise AdapterInvalid(
            f"{CONFIG}: r must be 1 to {rank_max} on this base, got {rank!r}. Train with a lower rank."
        )
    alpha = values.get("lora_alpha")
    if (
        not isinstance(alpha, int | float)
        or isinstance(alpha, bool)
        or not math.isfinite(alpha)
        or alpha <= 0
    ):
        raise AdapterInvalid(f"{CONFIG}: lora_alpha must be a number above 0, got {alpha!r}.")
    _check_taken(values)
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": alpha,
        "use_rslora": values.get("use_rslora") is True,
        "bias": "none",
        "target_modules": _modules(values.get("target_modules")),
    }


def trained_on_four_bits(path: Path) -> bool:
    """Whether the configuration names a 4-bit base (QLoRA); what it does not say cannot be seen."""
    return FOUR_BIT.search(str(_json(path).get("base_model_name_or_path"))) is not None


def check_weights(file: BinaryIO, *, size: int, config: Mapping[str, Any], base: Mapping[str, Any]) -> None:
    """Hold the header of a safetensors file to its length, the configuration and the base's shapes (its config.json).

    Raises:
        AdapterInvalid: it is no such file, or a tensor is not what it must be.
    """
    tensors = _header(file, size)
    shapes, layers = _shapes(base), int(base["num_hidden_layers"])
    found: dict[tuple[str, str], set[str]] = {}
    for name, shape in tensors.items():
        match = NAME.fullmatch(name)
        if match is None or MODULES.get(match[3]) != match[2] or int(match[1]) >= layers:
            raise AdapterInvalid(
                f"{WEIGHTS}: tensor {name[:200]!r} is not lora_A or lora_B of a module of one of the base's {layers} "
                "layers. Save the adapter alone, with PEFT's save_pretrained."
            )
        if match[3] not in config["target_modules"]:
            raise AdapterInvalid(
                f"{WEIGHTS}: tensor {name!r} is of a module that target_modules of {CONFIG} does not name: "
                f"{', '.join(config['target_modules'])}."
            )
        wide, narrow = shapes[match[3]], config["r"]
        wanted = [narrow, wide[0]] if match[4] == "A" else [wide[1], narrow]
        if shape != wanted:
            raise AdapterInvalid(
                f"{WEIGHTS}: tensor {name!r} must have shape {wanted} on this base at rank {narrow}, got {shape}. "
                "Is it an adapter of this base?"
            )
        found.setdefault((match[1], match[3]), set()).add(match[4])
    lonely = next((place for place, halves in found.items() if len(halves) == 1), None)
    if lonely is not None or not found:
        where = "no module" if lonely is None else f"layer {lonely[0]}, {lonely[1]}, only one"
        raise AdapterInvalid(
            f"{WEIGHTS}: every module needs lora_A and lora_B; {where} has them. Save it again."
        )


def _json(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(CONFIG_BYTES_MAX + 1)
        values = json.loads(data) if len(data) <= CONFIG_BYTES_MAX else None
    except (OSError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise AdapterInvalid(
            f"{path}: must be a JSON object of at most {CONFIG_BYTES_MAX} bytes, as PEFT writes it."
        )
    return values


def _check_taken(values: Mapping[str, Any]) -> None:
    """Nothing is asked for that the engine would leave out or do otherwise."""
    for key in NOT_TAKEN:
        if values.get(key):
            raise AdapterInvalid(
                f"{CONFIG}: {key} must not be set, got {str(values[key])[:200]!r}: the engine cannot serve it. "
                "Train without it."
            )
    bias = values.get("bias", "none")
    if bias != "none":
        raise AdapterInvalid(f"{CONFIG}: bias must be none, got {bias!r}. Train without biases.")
    start = values.get("init_lora_weights", True)
    if start is not None and type(start) is not bool and str(start).lower() not in PLAIN_STARTS:
        raise AdapterInvalid(
            f"{CONFIG}: init_lora_weights {start!r} changes the base's own weights, which stay as they are here. "
            "Convert it to a plain LoRA (PEFT: path_initial_model_for_weight_conversion)."
        )


def _modules(given: object) -> list[str]:
    names = sorted(set(map(str, given))) if isinstance(given, list) else []
    unknown = [name for name in names if name not in MODULES]
    if not names or unknown:
        got = unknown[0] if unknown else given
        raise AdapterInvalid(
            f"{CONFIG}: target_modules must be a list of names among {', '.join(MODULES)}, got {str(got)[:200]!r}. "
            "Train these modules only."
        )
    return names


def _header(file: BinaryIO, size: int) -> dict[str, list[int]]:
    """Shapes by name; the tensors fill the rest of the file exactly, one after another."""
    length = int.from_bytes(file.read(8), "little")
    if not HEADER_BYTES_MIN <= length <= min(HEADER_BYTES_MAX, size - 8):
        raise AdapterInvalid(f"{WEIGHTS}: is no safetensors file. Save the adapter as safetensors.")
    try:
        header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        tensors = [(name, one["dtype"], one["shape"], one["data_offsets"]) for name, one in header.items()]
        end = 0
        for _, dtype, shape, (start, stop) in sorted(tensors, key=lambda one: one[3]):
            whole = all(type(one) is int and one >= 1 for one in shape)
            if not whole or start != end or stop - start != DTYPE_BYTES[dtype] * math.prod(shape):
                raise ValueError(shape)
            end = stop
        if end != size - 8 - length:
            raise ValueError(end)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AdapterInvalid(
            f"{WEIGHTS}: its header does not describe its {size} bytes of {', '.join(DTYPE_BYTES)} tensors. Copy it "
            "again; was it cut short?"
        ) from error
    return {name: shape for name, _, shape, _ in tensors}


def _shapes(base: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """What each module of the base takes and gives."""
    hidden, inner, heads = base["hidden_size"], base["intermediate_size"], base["num_attention_heads"]
    head = base.get("head_dim") or hidden // heads
    query, value = head * heads, head * (base.get("num_key_value_heads") or heads)
    return {
        "q_proj": (hidden, query),
        "k_proj": (hidden, value),
        "v_proj": (hidden, value),
        "o_proj": (query, hidden),
        "gate_proj": (hidden, inner),
        "up_proj": (hidden, inner),
        "down_proj": (inner, hidden),
    }
