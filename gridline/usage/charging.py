"""What tokens cost, from the copy of a model's rates. Whole nano-credits per token, so nothing is ever rounded."""

from collections.abc import Mapping
from typing import Any

from gridline.errors import InvariantBroken


def charge_nanos(card: Mapping[str, Any], input_tokens: int, output_tokens: int) -> int:
    """Price in nano-credits of delivered tokens at the card's rates; embeddings pay for input tokens only.

    Raises:
        InvariantBroken: a rate or a count is not a whole number of at least 0.
    """
    output_price = 0 if card["kind"] == "embedding" else card["output_price_nanos"]
    for number in (card["input_price_nanos"], output_price, input_tokens, output_tokens):
        if type(number) is not int or number < 0:
            raise InvariantBroken(f"Rates and tokens are whole numbers of at least 0, got {number!r}.")
    return int(input_tokens * card["input_price_nanos"] + output_tokens * output_price)
