"""Fine-tuned models in a file: whose may be named, which go together, and what a partition's job is told of them."""

import json

import pytest

from gridline.catalog.cards import ModelCard, catalogue
from gridline.lines.adapters import Adapter, count_max
from gridline.lines.mixing import Offer
from gridline.lines.partitions import read_ids
from gridline.storage import Store, layout
from tests.gridline.lines.conftest import BATCH, MESSAGES, RESPONSES, Check, card, chat_line
from tests.gridline.lines.stored_bodies import stored_bodies

MIB = 1024 * 1024
BASE = card("tiny-chat", adapters_by_rank=((32, 8), (64, 4)), adapter_bytes_max=1008 * MIB)
OTHER = card("other-chat", adapters_by_rank=((64, 8),), adapter_bytes_max=1008 * MIB)


def adapter(name: str, *, rank: int = 16, mib: int = 10, base: str = "tiny-chat") -> Adapter:
    """An adapter of the account."""
    return Adapter(
        f"ft:{base}:me:{name}", base, rank, mib * MIB, f"adapters/acct_1/{name}", name * 8, {"r": rank}
    )


def offer(
    *own: Adapter, bases: tuple[ModelCard, ...] = (BASE, OTHER), retired: str = "ft:tiny-chat:me:old"
) -> Offer:
    """What the account has."""
    names = {one.id: one for one in own}
    served = {one.id: one for one in bases}
    return Offer(names, served, frozenset({retired}), frozenset({"gpt-oss-20b", "qwen3.5-9b"}))


def names(*models: str) -> list[dict[str, object]]:
    """A line a model."""
    return [chat_line(str(number), model=model) for number, model in enumerate(models)]


def messages(check: Check, given: Offer, *models: str) -> dict[int | None, str]:
    """By line what is wrong with it; every one is a model that is not found."""
    checked = check(*names(*models), offer=given)
    assert {(one.code, one.param) for one in checked.errors} <= {("model_not_found", "body.model")}
    return {one.line: one.message for one in checked.errors}


def test_a_batch_mixes_its_base_with_its_adapters(check: Check, store: Store) -> None:
    """Base and adapters in any order are one batch of the base; every line keeps the name that it was sent with."""
    one, two = adapter("a"), adapter("b", rank=64)
    checked = check(*names(one.id, "tiny-chat", two.id, one.id), offer=offer(one, two))
    assert checked.errors == ()
    assert checked.card is BASE
    assert checked.adapters == (one, two)
    spec = json.loads(store.read(layout.partition_spec_key(BATCH, 0)))
    assert [Adapter.from_dict(values) for values in spec["adapters"]] == [one, two]
    assert spec["model"]["id"] == "tiny-chat"
    assert spec["model"]["adapters_by_rank"] == [[32, 8], [64, 4]]
    assert len(read_ids(store, BATCH, 0)) == 4


def test_a_partition_names_only_the_adapters_of_its_lines(check: Check, store: Store) -> None:
    """A GPU job loads no adapter that none of its lines needs."""
    one, two = adapter("a"), adapter("b")
    small = card("tiny-chat", adapters_by_rank=((32, 8),), adapter_bytes_max=MIB * 100, partition_tokens=20)
    given = Offer({one.id: one, two.id: two}, {"tiny-chat": small})
    checked = check(*names(one.id, one.id, "tiny-chat", two.id), offer=given)
    assert len(checked.partitions) > 1
    found = [
        [
            values["id"]
            for values in json.loads(store.read(layout.partition_spec_key(BATCH, part.number)))["adapters"]
        ]
        for part in checked.partitions
    ]
    assert found[0] == [one.id]
    assert found[-1] == [two.id]


def test_an_adapter_costs_what_its_base_does(check: Check) -> None:
    """The ceiling does not depend on which of them a line names."""
    one = adapter("a")
    given = offer(one)
    assert check(*names(one.id), offer=given).ceiling_nanos == check(*names("tiny-chat")).ceiling_nanos


@pytest.mark.parametrize(
    ("endpoint", "asked"),
    [
        (RESPONSES, {"input": "Hi"}),
        (MESSAGES, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}),
    ],
)
def test_every_endpoint_of_chat_models_takes_adapters(
    check: Check, store: Store, endpoint: str, asked: dict[str, object]
) -> None:
    """A line of responses or messages may name one, and the engine is sent that name."""
    one = adapter("a")
    lines = [
        {"custom_id": name, "method": "POST", "url": endpoint, "body": {"model": name, **asked}}
        for name in (one.id, "tiny-chat")
    ]
    checked = check(*lines, endpoint=endpoint, offer=offer(one))
    assert (checked.errors, checked.adapters) == ((), (one,))
    assert [body["model"] for body in stored_bodies(store, BATCH)] == [one.id, "tiny-chat"]


def test_unknown_and_foreign_read_the_same(check: Check) -> None:
    """An id of another account cannot be told from one that nobody has."""
    found = messages(check, offer(), "ft:tiny-chat:them:1", "ft:tiny-chat:nobody:2")
    assert found[1].replace("them:1", "nobody:2") == found[2]
    assert "does not exist, was deactivated, or belongs to another account" in found[1]


def test_each_refusal_says_which_rule_it_is(check: Check) -> None:
    """Retired, download-only, another base, a base that is not served: each is told what to do."""
    strange = adapter("c", base="other-chat")
    away = adapter("d", base="gone-chat")
    found = messages(
        check,
        offer(strange, away),
        "tiny-chat",
        "ft:tiny-chat:me:old",
        "ft:gpt-oss-20b:me:1",
        strange.id,
        away.id,
    )
    assert "it was retired" in found[2]
    assert "fine-tunes of gpt-oss-20b can be downloaded only" in found[3]
    assert "its base is other-chat, and this batch's is tiny-chat" in found[4]
    assert "its base gone-chat is not served here" in found[5]


def test_an_adapter_first_and_another_base_later(check: Check) -> None:
    """The adapter's base is the batch's: another base model does not match it."""
    one = adapter("a")
    checked = check(*names(one.id, "other-chat"), offer=offer(one))
    assert [(error.code, error.line) for error in checked.errors] == [("mismatched_model", 2)]


def test_counts_go_by_the_highest_rank(check: Check) -> None:
    """Eight up to rank 32, four as soon as one is above, none above what the card names; every line of it is told."""
    low = [adapter(f"l{number}") for number in range(8)]
    assert messages(check, offer(*low), *[one.id for one in low]) == {}
    high = [*[adapter(f"h{number}") for number in range(4)], adapter("top", rank=64)]
    found = messages(check, offer(*high), *[one.id for one in high], high[-1].id, high[0].id)
    assert sorted(map(str, found)) == ["5", "6"]
    assert "5 fine-tuned models, the highest of rank 64, and tiny-chat serves 4 together" in found[5]
    assert "serves 0 together" in messages(check, offer(adapter("x", rank=128)), "ft:tiny-chat:me:x")[1]


def test_weights_together_are_bounded(check: Check) -> None:
    """1,008 MiB are taken, one byte more is not."""
    whole = [adapter("a", mib=500), adapter("b", mib=508)]
    assert messages(check, offer(*whole), *[one.id for one in whole]) == {}
    over = [*whole, Adapter("ft:tiny-chat:me:c", "tiny-chat", 8, 1, "k", "s", {})]
    found = messages(check, offer(*over), *[one.id for one in over])
    assert list(found) == [3]
    assert "1009 MiB of weights, and tiny-chat serves 1008 MiB together" in found[3]


def test_a_base_that_is_for_adapters_only(check: Check) -> None:
    """Its adapters can be named, the base itself cannot."""
    only = card("hidden-chat", adapters_by_rank=((64, 4),), adapter_bytes_max=MIB * 100)
    one = adapter("a", base="hidden-chat")
    found = messages(check, offer(one, bases=(only,)), "hidden-chat")
    assert "not supported by the Batch API." in found[1]


@pytest.mark.parametrize(
    ("model", "ranks", "most"),
    [
        ("qwen2.5-0.5b-instruct", [64] * 8, 8),
        ("qwen2.5-1.5b-instruct", [8], 8),
        ("qwen2.5-7b-instruct", [32], 8),
        ("mistral-7b-instruct-v0.3", [33], 4),
        ("llama-3.1-8b-instruct", [64, 8], 4),
        ("qwen3-8b", [8], 4),
        ("bge-m3", [8], 0),
    ],
)
def test_shipped_limits(model: str, ranks: list[int], most: int) -> None:
    """What each base serves is what the product promises."""
    shipped = catalogue()[model]
    assert count_max(shipped.adapters_by_rank, ranks) == most
    assert shipped.adapter_bytes_max == 1008 * MIB
