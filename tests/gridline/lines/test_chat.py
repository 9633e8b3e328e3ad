"""Chat bodies: the allow-list, OpenAI's ranges, and what the engine is sent."""

from typing import Any

import pytest

from gridline.lines.chat import ChatRequest, read_chat
from gridline.lines.errors import LineRefused
from gridline.lines.schema_judge import SchemaJudge

from .conftest import CARDS

CARD = CARDS["tiny-chat"]
MESSAGES = [{"role": "user", "content": "Hi"}]


def read(**body: Any) -> ChatRequest:
    """Read a body with these keys beside model and messages."""
    return read_chat({"model": "tiny-chat", "messages": MESSAGES, **body}, CARD, SchemaJudge())


def refusal(**body: Any) -> LineRefused:
    """The refusal of a body."""
    with pytest.raises(LineRefused) as caught:
        read(**body)
    return caught.value


def test_plain_body() -> None:
    """A plain body is sent as it is; null keys are not sent."""
    request = read(temperature=None, n=None, stop=None, seed=None, response_format=None, logit_bias=None)
    assert request == ChatRequest({"model": "tiny-chat", "messages": MESSAGES}, MESSAGES, None, 1)


@pytest.mark.parametrize("seed", [0, -1, 2**63 - 1, -(2**63), None])
def test_case_57_seed_in_range(seed: int | None) -> None:
    """Every 64-bit seed is passed on."""
    assert read(seed=seed).body.get("seed") == seed


@pytest.mark.parametrize(
    ("key", "value"),
    [("seed", value) for value in (2**63, 2**64, -(2**63) - 1, 1.5, "100", True)]
    + [(key, 2**63) for key in ("n", "max_tokens", "top_logprobs")],
)
def test_case_57_out_of_range(key: str, value: object) -> None:
    """A seed or count that the engine could not hold is refused by name."""
    assert refusal(**{key: value, "logprobs": True}).param == f"body.{key}"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("temperature", 0),
        ("temperature", 2),
        ("temperature", 0.5),
        ("top_p", 1),
        ("top_p", 0.01),
        ("presence_penalty", -2),
        ("frequency_penalty", 2),
        ("stop", ["a", "b", "c", "d"]),
    ],
)
def test_case_58_in_range(key: str, value: object) -> None:
    """OpenAI's ranges, ends included, are passed on unchanged."""
    assert read(**{key: value}).body[key] == value


OUT_OF_RANGE: dict[str, list[object]] = {
    "temperature": [2.1, -0.1, "0.5", float("inf"), float("nan"), True],
    "top_p": [0, 1.1, "1"],
    "presence_penalty": [3],
    "frequency_penalty": [-2.1],
    "stop": ["", ["a"] * 5, [], [1], [""], 3, {}],
}


def test_case_58_one_stop() -> None:
    """One stop text is the same as a list of it."""
    assert read(stop="x").body["stop"] == ["x"]


@pytest.mark.parametrize(
    ("key", "value"), [(key, one) for key, values in OUT_OF_RANGE.items() for one in values]
)
def test_case_58_out_of_range(key: str, value: object) -> None:
    """Anything else is refused by name."""
    assert refusal(**{key: value}).param == f"body.{key}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"max_completion_tokens": 5}, 5),
        ({"max_tokens": 7}, 7),
        ({"max_tokens": 5, "max_completion_tokens": 5}, 5),
        ({"max_tokens": None, "max_completion_tokens": 5}, 5),
        ({"max_tokens": None, "max_completion_tokens": None}, None),
        ({"max_tokens": 1024}, 1024),
    ],
)
def test_case_59_both_names_of_max_tokens(body: dict[str, Any], expected: int | None) -> None:
    """Either name works, and both when they agree."""
    assert read(**body).max_tokens == expected


def test_case_59_names_disagree() -> None:
    """Two different values are refused."""
    assert refusal(max_tokens=50, max_completion_tokens=5).param == "body.max_completion_tokens"


@pytest.mark.parametrize("value", [0, -1, 1025, 10_000_000, 5.0, "5", True])
def test_case_61_max_tokens_out_of_range(value: object) -> None:
    """Nothing, less and more than the model's cap is refused."""
    assert refusal(max_tokens=value).param == "body.max_tokens"
    assert refusal(max_completion_tokens=value).param == "body.max_completion_tokens"


@pytest.mark.parametrize("top", [0, 5])
def test_case_65_logprobs(top: int) -> None:
    """Up to five alternatives beside the chosen token."""
    body = read(logprobs=True, top_logprobs=top).body
    assert (body["logprobs"], body["top_logprobs"]) == (True, top)


@pytest.mark.parametrize(
    "body",
    [
        {"logprobs": True, "top_logprobs": 6},
        {"logprobs": True, "top_logprobs": -1},
        {"top_logprobs": 5},
        {"logprobs": False, "top_logprobs": 5},
        {"logprobs": 1},
        {"logprobs": 5},
    ],
)
def test_case_65_other_logprobs(body: dict[str, Any]) -> None:
    """Other numbers, and alternatives without logprobs, are refused."""
    assert refusal(**body).param in {"body.top_logprobs", "body.logprobs"}


@pytest.mark.parametrize("n", [0, 9, -1, 1.0, "2"])
def test_case_66_n_out_of_range(n: object) -> None:
    """One to eight choices."""
    assert refusal(n=n).param == "body.n"


def test_case_66_n() -> None:
    """Eight choices are passed on and known to the hold."""
    request = read(n=8)
    assert (request.choices, request.body["n"]) == (8, 8)


def test_several_greedy_choices() -> None:
    """Several choices at temperature 0, which the engine refuses, are asked for as its most likely token."""
    body = read(n=3, temperature=0).body
    assert (body["temperature"], body["top_k"]) == (1, 1)
    assert "top_k" not in read(n=1, temperature=0).body
    assert "top_k" not in read(n=3, temperature=0.5).body


@pytest.mark.parametrize(
    "key",
    [
        *("api_base", "base_url", "url", "extra_headers"),
        *("chat_template_kwargs", "chat_template", "mm_processor_kwargs", "priority", "structured_outputs"),
        *("guided_json", "guided_regex", "guided_choice", "top_k", "min_tokens", "ignore_eos"),
        *("tools", "tool_choice", "logit_bias", "service_tier", "prediction", "functions", "metadata"),
        *("dimensions", "input", "__proto__", ""),
    ],
)
def test_case_67_and_68_keys_outside_the_allow_list(key: str) -> None:
    """A key that no rule allows is refused by name, and passes as null."""
    assert refusal(**{key: 1}).param == f"body.{key}"
    assert key not in read(**{key: None}).body


def test_store_and_stream() -> None:
    """False is what a batch does anyway; true is refused, streaming in OpenAI's words."""
    assert not {"stream", "store"} & read(stream=False, store=False).body.keys()
    assert refusal(store=True).param == "body.store"
    found = refusal(stream=True)
    assert (found.code, found.param) == ("streaming_unsupported", "body.stream")
    assert found.message == "Chat Completions: Streaming is not supported in the Batch API."


def test_user_is_ignored() -> None:
    """A user text is accepted and not sent; anything else is refused."""
    assert "user" not in read(user="u-1").body
    assert refusal(user={"a": 1}).param == "body.user"


def test_case_69_text_parts() -> None:
    """Text parts become the one text that the engine would make of them."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert read(messages=[{"role": "user", "content": parts}]).messages == [
        {"role": "user", "content": "a\nb"}
    ]


def test_case_69_developer_is_not_dropped() -> None:
    """A developer message runs as a system message: templates would pass over it."""
    assert read(messages=[{"role": "developer", "content": "x"}, *MESSAGES]).messages[0]["role"] == "system"


@pytest.mark.parametrize(
    "content",
    [
        [],
        None,
        5,
        {"type": "text", "text": "a"},
        ["a"],
        [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}],
        [{"type": "text", "text": "a"}, {"type": "input_audio", "input_audio": {}}],
        [{"type": "text"}],
        [{"type": "text", "text": "a", "cache_control": {}}],
    ],
)
def test_case_69_other_content(content: object) -> None:
    """Parts that the model cannot use are refused, never dropped."""
    assert refusal(messages=[{"role": "user", "content": content}]).param == "body.messages[0].content"


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([], "body.messages"),
        ("hi", "body.messages"),
        (["hi"], "body.messages[0]"),
        ([{"content": "x"}], "body.messages[0].role"),
        ([{"role": "tool", "content": "x"}], "body.messages[0].role"),
        ([{"role": "user", "content": "x", "tool_calls": []}], "body.messages[0].tool_calls"),
    ],
)
def test_case_69_other_messages(messages: object, param: str) -> None:
    """Anything but a text conversation is refused where it stands."""
    assert refusal(messages=messages).param == param


def test_no_messages() -> None:
    """Without messages OpenAI's own words."""
    assert refusal(messages=None).message == "Messages parameter is required."
