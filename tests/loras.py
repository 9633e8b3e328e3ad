"""Tiny random LoRA adapters as PEFT saves them, written by hand: no torch, so that the platform's tests can make them."""

import json
import random
import struct
from pathlib import Path
from typing import Any

BASE = {
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
}
"""The shape of a base model, as its config.json has it."""
Tensor = tuple[str, list[int], bytes]


def config(rank: int = 4, **over: Any) -> dict[str, Any]:
    """An adapter_config.json."""
    values = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": 2 * rank,
        "target_modules": ["q_proj", "v_proj"],
        "bias": "none",
        "base_model_name_or_path": "somewhere/base",
    }
    return {**values, **over}


def tensors(base: dict[str, Any], *, rank: int = 4, seed: int = 1) -> dict[str, Tensor]:
    """lora_A and lora_B of q_proj and v_proj in every layer, as dtype, shape and bytes by name."""
    chance = random.Random(seed)
    hidden = base["hidden_size"]
    value = hidden // base["num_attention_heads"] * base["num_key_value_heads"]
    made = {}
    for layer in range(base["num_hidden_layers"]):
        for module, out in (("q_proj", hidden), ("v_proj", value)):
            for half, shape in (("A", [rank, hidden]), ("B", [out, rank])):
                numbers = [chance.gauss(0, 0.2) for _ in range(shape[0] * shape[1])]
                name = f"base_model.model.model.layers.{layer}.self_attn.{module}.lora_{half}.weight"
                made[name] = ("F32", shape, struct.pack(f"<{len(numbers)}f", *numbers))
    return made


def safetensors(content: dict[str, Tensor]) -> bytes:
    """The tensors as a safetensors file."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, (dtype, shape, raw) in content.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def write(folder: Path, base: dict[str, Any], *, rank: int = 4, seed: int = 1, **over: Any) -> Path:
    """A folder with an adapter of this base; ``over`` replaces keys of its configuration."""
    folder.mkdir(parents=True)
    folder.joinpath("adapter_config.json").write_text(json.dumps(config(rank, **over)))
    folder.joinpath("adapter_model.safetensors").write_bytes(safetensors(tensors(base, rank=rank, seed=seed)))
    return folder
