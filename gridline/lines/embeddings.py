"""What an embeddings line may say, and the body that the engine is sent."""

from typing import Any, NamedTuple

from gridline.limits import EMBEDDING_INPUTS_PER_LINE_MAX
from gridline.lines import storing
from gridline.lines.card import Card
from gridline.lines.errors import LineRefused
from gridline.lines.fields import Fields, shown

ALLOWED = frozenset({"model", "input", "encoding_format", "dimensions", "user", "stream", "store"})
FORMATS = ("float", "base64")


class EmbeddingRequest(NamedTuple):
    """An embeddings line that keeps every rule."""

    body: dict[str, Any]
    """What the engine is sent."""
    texts: list[str]
    """Inputs given as text; empty when they were given as token ids."""
    token_ids: list[list[int]]
    """Inputs given as token ids of this model; empty when they were given as text."""

    @property
    def inputs(self) -> int:
        """Embeddings that the line asks for."""
        return len(self.texts) or len(self.token_ids)


def read_embeddings(values: dict[str, Any], card: Card) -> EmbeddingRequest:
    """The request that this body makes of this model.

    Raises:
        LineRefused: the first rule that the body breaks.
    """
    body = Fields(values, "body")
    body.not_streamed()
    storing.refuse(body)
    body.only(ALLOWED)
    body.text("user")  # Accepted and not passed on: nothing here acts on it.
    _check_dimensions(body, card)
    form = body.text("encoding_format")
    if form is not None and form not in FORMATS:
        body.refuse(
            "encoding_format", f"Invalid 'encoding_format': expected float or base64, but got {shown(form)}."
        )
    texts, token_ids = _inputs(body)
    clean = {"model": card.id, "input": values["input"]}
    if form is not None:
        clean["encoding_format"] = form
    return EmbeddingRequest(clean, texts, token_ids)


def _check_dimensions(body: Fields, card: Card) -> None:
    """Only the native size; it is not passed on, because the engine refuses the key even then."""
    size = body.values.get("dimensions")
    if size is None:
        return
    if type(size) is not int:
        body.wrong_type("dimensions", "an integer")
    if size != card.dimensions:
        body.refuse(
            "dimensions",
            f"{card.id} has {card.dimensions} dimensions, and 'dimensions' asks for {shown(size)}.",
        )


def _inputs(body: Fields) -> tuple[list[str], list[list[int]]]:
    """(texts, token ids) of the line, one of them empty."""
    value = body.values.get("input")
    if value is None:
        raise LineRefused("Input parameter is required.", param=body.param("input"))
    if type(value) is str:
        value = [value]
    if type(value) is not list:
        body.wrong_type("input", "a string or an array")
    if value and all(type(one) is int for one in value):
        value = [value]
    if not 1 <= len(value) <= EMBEDDING_INPUTS_PER_LINE_MAX:
        expected = f"1 to {EMBEDDING_INPUTS_PER_LINE_MAX} inputs"
        body.refuse("input", f"Invalid 'input': expected {expected}, but got {len(value)} instead.")
    if not all(value):
        body.refuse("input", f"Invalid 'input': input {_first_empty(value)} is empty.")
    if all(type(one) is str for one in value):
        return value, []
    if not all(_is_token_ids(one) for one in value):
        expected = "texts, or arrays of token ids (whole numbers from 0), not a mixture"
        body.refuse("input", f"Invalid 'input': expected {expected}.")
    return [], value


def _is_token_ids(value: object) -> bool:
    return type(value) is list and all(type(token) is int and token >= 0 for token in value)


def _first_empty(value: list[Any]) -> int:
    """Index of the first empty input."""
    return next(index for index, one in enumerate(value) if not one)
