"""Cards: the shipped catalogue, and refusal of bad entries by name."""

import re
from dataclasses import replace

import pytest

from gridline.catalog.cards import CATALOGUE, ModelCard, catalogue, read_catalogue, sold
from gridline.catalog.errors import CatalogueInvalid
from gridline.profiles.profile import load
from tests.dialects import speak

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
        ({"batch_input_price_nanos": "-1"}, "batch_input_price_nanos must be"),
        ({"batch_output_price_nanos": "1.5"}, "batch_output_price_nanos must be"),
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
        ({"adapters_by_rank": "[[8]]"}, "pairs of highest rank and adapters"),
        ({"adapters_by_rank": "[[64, 4], [32, 8]]"}, "rising ranks"),
        ({"adapters_by_rank": "[[7, 4]]"}, "rising ranks among 1, 8,"),
        ({"adapters_by_rank": "[[8, 9]]"}, "1 to 8 adapters"),
        ({"adapters_by_rank": "[[8, 8]]"}, "adapter_bytes_max must be at least 1"),
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


def test_the_default_dialect_sells_at_the_standard_rate() -> None:
    """Its price is the catalogue's, whatever batch price a card lists, on the endpoints that the dialect lists."""
    card = read_catalogue(
        toml(batch_input_price_nanos="1", endpoints='["/v1/chat/completions", "/v1/messages"]')
    )["m"]
    here = sold(card, load("gridline"))
    assert (here.input_price_nanos, here.output_price_nanos) == (2, 4)
    assert here.endpoints == ("/v1/chat/completions",)


def test_a_dialect_may_sell_at_half_the_rate() -> None:
    """Half of each price, exactly; a batch price that the card lists goes first."""
    profile = load("gridport")
    plain, listed = read_catalogue(toml())["m"], read_catalogue(toml(batch_output_price_nanos="3"))["m"]
    assert (sold(plain, profile).input_price_nanos, sold(plain, profile).output_price_nanos) == (1, 2)
    assert (sold(listed, profile).input_price_nanos, sold(listed, profile).output_price_nanos) == (1, 3)


def test_every_shipped_price_has_its_half() -> None:
    """The whole catalogue can be sold in the dialect that takes half."""
    profile, standard = load("gridport"), read_catalogue(CATALOGUE.read_text(encoding="utf-8"))
    for card in standard.values():
        assert sold(card, profile).input_price_nanos * 2 == card.input_price_nanos
        assert set(sold(card, profile).endpoints) == set(card.endpoints)


def test_a_price_without_a_whole_share_is_refused() -> None:
    """Nothing is ever rounded: a dialect that would have to cannot sell."""
    card = read_catalogue(toml())["m"]
    with pytest.raises(CatalogueInvalid, match="33% of 2 nano-credits"):
        sold(card, replace(load("gridport"), price_percent=33))


def test_the_catalogue_is_that_of_the_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all the platform sees as a card's price is the price in the dialect that it speaks."""
    standard = catalogue()["bge-m3"].input_price_nanos
    speak(monkeypatch, "gridport")
    assert catalogue()["bge-m3"].input_price_nanos * 2 == standard
