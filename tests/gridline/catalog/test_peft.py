"""What an adapter's folder must hold before anybody serves it."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from gridline.catalog import peft
from gridline.catalog.errors import AdapterInvalid
from tests import loras

RANK_MAX = 16


def read(tmp_path: Path, **over: Any) -> dict[str, Any]:
    """The configuration as it is read."""
    path = tmp_path / "adapter_config.json"
    path.write_text(json.dumps(loras.config(**over)))
    return peft.read_config(path, RANK_MAX)


def check(data: bytes, *, rank: int = 4) -> None:
    """Hold weights to a configuration of this rank and the tiny base."""
    modules = {"r": rank, "target_modules": ["q_proj", "v_proj"]}
    peft.check_weights(io.BytesIO(data), size=len(data), config=modules, base=loras.BASE)


def test_only_what_an_engine_reads_is_kept(tmp_path: Path) -> None:
    """Names of places and other keys of the trainer's host do not reach the object store."""
    assert read(tmp_path, rank=8, revision="x", use_rslora=True) == {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": 8,
        "lora_alpha": 16,
        "use_rslora": True,
        "bias": "none",
        "target_modules": ["q_proj", "v_proj"],
    }


@pytest.mark.parametrize(
    ("over", "named"),
    [
        ({"peft_type": "LOHA"}, "peft_type"),
        ({"r": 17}, "r must be 1 to 16 on this base, got 17"),
        ({"r": True}, "r must be"),
        ({"lora_alpha": 0}, "lora_alpha"),
        ({"lora_alpha": float("nan")}, "lora_alpha"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"use_dora": True}, "use_dora"),
        ({"rank_pattern": {"q_proj": 2}}, "rank_pattern"),
        ({"bias": "all"}, "bias must be none"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights"),
        ({"target_modules": ["q_proj", "embed_tokens"]}, "'embed_tokens'"),
        ({"target_modules": "all-linear"}, "target_modules"),
        ({"target_modules": []}, "target_modules"),
    ],
)
def test_what_the_engine_cannot_do_is_refused_by_name(
    tmp_path: Path, over: dict[str, Any], named: str
) -> None:
    """A key that would change what the adapter is, is named with its value."""
    with pytest.raises(AdapterInvalid, match=named):
        read(tmp_path, **over)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "null"])
def test_a_configuration_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    """Whatever is in the file, the answer is a sentence."""
    path = tmp_path / "adapter_config.json"
    path.write_text(text)
    with pytest.raises(AdapterInvalid, match="must be a JSON object"):
        peft.read_config(path, RANK_MAX)


def test_a_base_of_four_bits_is_seen(tmp_path: Path) -> None:
    """QLoRA shows in the name of the base that it was trained on."""
    read(tmp_path, base_model_name_or_path="unsloth/Qwen2.5-7B-Instruct-bnb-4bit")
    assert peft.trained_on_four_bits(tmp_path / "adapter_config.json")
    read(tmp_path)
    assert not peft.trained_on_four_bits(tmp_path / "adapter_config.json")


def test_good_weights_pass() -> None:
    """What PEFT writes of this base at this rank is taken."""
    check(loras.safetensors(loras.tensors(loras.BASE)))


def test_weights_of_another_rank_or_base_are_refused() -> None:
    """The shapes must be those of the base at the rank that the configuration says."""
    with pytest.raises(AdapterInvalid, match=r"must have shape \[8, 8\]"):
        check(loras.safetensors(loras.tensors(loras.BASE)), rank=8)
    with pytest.raises(AdapterInvalid, match="Is it an adapter of this base"):
        check(loras.safetensors(loras.tensors({**loras.BASE, "hidden_size": 16})))
    with pytest.raises(AdapterInvalid, match="base's 2 layers"):
        check(loras.safetensors(loras.tensors({**loras.BASE, "num_hidden_layers": 3})))


@pytest.mark.parametrize(
    "name",
    [
        "base_model.model.lm_head.weight",
        "base_model.model.model.layers.0.self_attn.q_proj.weight",
        "base_model.model.model.layers.0.mlp.q_proj.lora_A.weight",
        "base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight",
    ],
)
def test_tensors_that_are_no_part_of_the_adapter_are_refused(name: str) -> None:
    """Only lora_A and lora_B of the modules that the configuration names."""
    extra = {name: ("F32", [4, 8], b"\0" * 128)}
    with pytest.raises(AdapterInvalid, match=name.replace(".", r"\.")):
        check(loras.safetensors({**loras.tensors(loras.BASE), **extra}))


def test_half_a_module_is_refused() -> None:
    """lora_A without lora_B, or nothing at all, is no adapter."""
    whole = loras.tensors(loras.BASE)
    with pytest.raises(AdapterInvalid, match="layer 1, v_proj, only one"):
        check(loras.safetensors(dict(list(whole.items())[:-1])))
    with pytest.raises(AdapterInvalid, match="no module"):
        check(loras.safetensors({}))


def _header(**over: Any) -> bytes:
    one = {"dtype": "F32", "shape": [4, 8], "data_offsets": [0, 128], **over}
    text = json.dumps({"x": one}).encode()
    return len(text).to_bytes(8, "little") + text + b"\0" * 128


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04\x95 a pickle",
        (2**63).to_bytes(8, "little") + b"{}",
        _header(dtype="I64"),
        _header(shape=[4, -8]),
        _header(shape=[4, 8.0]),
        _header(data_offsets=[0, 120]),
        _header(data_offsets=[8, 136]),
        _header()[:-1],
        _header() + b"\0",
        (4).to_bytes(8, "little") + b"[[]]",
    ],
)
def test_files_that_are_not_whole_safetensors_are_refused(data: bytes) -> None:
    """A pickle, a file cut short, one with something behind it, lengths that lie: each is a sentence."""
    with pytest.raises(AdapterInvalid, match="safetensors"):
        check(data)
