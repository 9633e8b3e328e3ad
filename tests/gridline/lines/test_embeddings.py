"""Embedding bodies: inputs, formats, dimensions."""

from typing import Any

import pytest

from gridline.lines.embeddings import EmbeddingRequest, read_embeddings
from gridline.lines.errors import LineRefused

from .conftest import CARDS

CARD = CARDS["tiny-embed"]


def read(**body: Any) -> EmbeddingRequest:
    """Read a body with these keys beside the model."""
    return read_embeddings({"model": "tiny-embed", "input": "w1", **body}, CARD)


def refusal(**body: Any) -> LineRefused:
    """The refusal of a body."""
    with pytest.raises(LineRefused) as caught:
        read(**body)
    return caught.value


@pytest.mark.parametrize("form", ["float", "base64"])
def test_case_70_formats(form: str) -> None:
    """Both of OpenAI's formats are passed on."""
    assert read(encoding_format=form).body["encoding_format"] == form


def test_case_70_format_absent() -> None:
    """No format, or null, leaves the engine's own."""
    assert read(encoding_format=None).body == {"model": "tiny-embed", "input": "w1"}


@pytest.mark.parametrize("form", ["int8", 1])
def test_case_70_other_formats(form: object) -> None:
    """Other formats are refused."""
    assert refusal(encoding_format=form).param == "body.encoding_format"


@pytest.mark.parametrize(
    ("value", "texts", "token_ids"),
    [
        ("w1", ["w1"], []),
        (["w1", "w2"], ["w1", "w2"], []),
        ([3, 4], [], [[3, 4]]),
        ([[3], [4, 5]], [], [[3], [4, 5]]),
        (" ", [" "], []),
    ],
)
def test_case_71_inputs(value: object, texts: list[str], token_ids: list[list[int]]) -> None:
    """Texts and token ids, one or many, are told apart and sent as they came."""
    request = read(input=value)
    assert (request.texts, request.token_ids, request.body["input"]) == (texts, token_ids, value)


@pytest.mark.parametrize(
    "value", [["a", [1]], [1.5], [-1], [True], [[1], "a"], [["a"]], [[1.5]], [[-1]], [None], {}, 5, [[[1]]]]
)
def test_case_71_mixtures(value: object) -> None:
    """Mixtures and ids that cannot be are refused."""
    assert refusal(input=value).param == "body.input"


@pytest.mark.parametrize("value", [[], "", [""], ["a", ""], [[]], [[1], []], None, ["w1"] * 2049])
def test_case_73_empty_and_too_many(value: object) -> None:
    """Nothing to embed, anywhere, and more than 2,048 inputs are refused."""
    assert refusal(input=value).param == "body.input"


def test_case_73_most_inputs() -> None:
    """2,048 inputs pass."""
    assert read(input=["w1"] * 2048).inputs == 2048


@pytest.mark.parametrize("dimensions", [4, None])
def test_case_72_native_dimensions(dimensions: int | None) -> None:
    """The native size passes, and is not sent: the engine would refuse it."""
    assert "dimensions" not in read(dimensions=dimensions).body


@pytest.mark.parametrize("dimensions", [3, 0, -1, "4", 4.0, True])
def test_case_72_other_dimensions(dimensions: object) -> None:
    """Any other size is refused."""
    assert refusal(dimensions=dimensions).param == "body.dimensions"


@pytest.mark.parametrize("key", ["messages", "truncate_prompt_tokens", "priority", "n"])
def test_keys_outside_the_allow_list(key: str) -> None:
    """A key that no rule allows is refused by name."""
    assert refusal(**{key: 1}).param == f"body.{key}"
