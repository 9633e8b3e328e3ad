"""What the lines of one file are held to: where they go, what they may name, and what becomes of some refusals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gridline.lines.card import Card
from gridline.lines.mixing import Offer


@dataclass(frozen=True)
class Rules:
    """The endpoint of a file's lines and what the account and the platform's dialect allow them."""

    endpoint: str
    cards: Mapping[str, Card]
    """The base models on offer, by id."""
    offer: Offer = field(default_factory=Offer)
    """The account's fine-tuned models."""
    storing_fails: Literal["file", "line"] = "file"
    """What fails where a line asks for a stored response."""
