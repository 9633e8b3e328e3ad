"""Cards: the shipped catalogue, and refusal of bad entries by name."""

import re

import pytest

from gridline.catalog.cards import ModelCard, catalogue, read_catalogue
from gridline.catalog.errors import CatalogueInvalid

ENTRY = {
    "repository": '"a/b"',
    "commit": f'"{"a" * 40}"',
    "dtype": '"bfloat16"',
    "licence": '"MIT"',
    "kind": '"chat"',
    "endpoints": '["/v1/chat/completions"]',
    "context_tokens": "8192",
    "output_tokens_max": "1024",
    "input_price_nanos": "2",
    "output_price_nanos": "4",
    "engine_arguments": '["--dtype", "bfloat16"]',
    "partition_tokens": "1000",
    "offered": "true",
}


def toml(**over: str) -> str:
    """One entry named m, with values replaced or (empty) left out."""
    lines = [f"{key} = {value}" for key, value in {**ENTRY, **over}.items() if value]
    return "[models.m]\n" + "\n".join(lines)


def test_shipped_catalogue() -> None:
    """Every model that the product promises is there, and nothing of 70B or larger."""
    cards = catalogue()
    assert set(cards) == {
        "qwen2.5-0.5b-instruct",
        "qwen2.5-1.5b-instruct",
        "qwen2.5-7b-instruct",
        "mistral-7b-instruct-v0.3",
        "llama-3.1-8b-instruct",
        "qwen3-8b",
        "bge-m3",
        "smollm2-135m-instruct",
        "all-minilm-l6-v2",
    }
    assert {card.id for card in cards.values() if not card.offered} == {"llama-3.1-8b-instruct", "qwen3-8b"}
    assert (cards["bge-m3"].dimensions, cards["all-minilm-l6-v2"].dimensions) == (1024, 384)
    assert cards["all-minilm-l6-v2"].context_tokens == 256
    assert all(
        re.fullmatch("[0-9a-f]{40}", card.commit) or card.package for card in cards.values() if card.offered
    )


def test_copy_round_trip() -> None:
    """A card read back from its stored copy is the same card, whatever a later version added to the copy."""
    for card in catalogue().values():
        assert ModelCard.from_copy({**card.copy(), "later_key": 1}) == card


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({"input_price_nanos": "1.5"}, "input_price_nanos must be a int"),
        ({"input_price_nanos": "3"}, "even whole number"),
        ({"output_price_nanos": "-2"}, "at least 0"),
        ({"commit": '"main"'}, "40 hexadecimal"),
        ({"commit": ""}, "commit must be a str"),
        ({"kind": '"image"'}, "kind must be one of"),
        ({"endpoints": '["/v1/embeddings"]'}, "endpoints of a model of kind chat"),
        ({"kind": '"embedding"', "endpoints": '["/v1/embeddings"]'}, "needs dimensions"),
        ({"output_tokens_max": "9000"}, "below context_tokens"),
        ({"partition_tokens": "0"}, "partition_tokens must be at least 1"),
        ({"colour": '"red"'}, "unknown key 'colour'"),
        ({"package": '"p==1.0"'}, "must repeat package"),
        ({"package": '"p"'}, "name==version"),
        ({"engine_arguments": "[1]"}, "engine_arguments must be texts"),
        ({"gpu_seconds_per_batch_max": "0"}, "gpu_seconds_per_batch_max must be"),
        ({"gpu_seconds_per_batch_max": "true"}, "gpu_seconds_per_batch_max must be"),
    ],
)
def test_bad_entry_is_refused_by_name(over: dict[str, str], words: str) -> None:
    """A bad entry stops the start with the model's id and the key in the message."""
    with pytest.raises(CatalogueInvalid, match="model 'm'") as caught:
        read_catalogue(toml(**over))
    assert words in caught.value.message


def test_good_entry_passes() -> None:
    """The entry that the refusals above start from is a good one."""
    card = read_catalogue(toml())["m"]
    assert (card.context_tokens, card.gpu_seconds_per_batch_max) == (8192, None)
    bounded = read_catalogue(toml(gpu_seconds_per_batch_max="36_000"))["m"]
    assert bounded.copy()["gpu_seconds_per_batch_max"] == 36_000


def test_not_toml() -> None:
    """A text that is not TOML is refused as such."""
    with pytest.raises(CatalogueInvalid, match="not TOML"):
        read_catalogue("[models")


def test_id_that_leaves_its_folder() -> None:
    """An id that could name a path outside the models' folder is refused."""
    with pytest.raises(CatalogueInvalid, match="names a folder"):
        read_catalogue(toml().replace("[models.m]", '[models."../m"]'))
