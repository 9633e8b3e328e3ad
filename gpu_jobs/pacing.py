"""How many lines a job keeps in flight: as many as fill the engine and still all end within a line's time bound."""

from collections.abc import Iterable
from typing import Any

WRITTEN_WEIGHT = 8
"""A written token takes the engine about as long as so many tokens read, many lines at once."""
HEAVY = 8_192
"""A line that writes 1,024 tokens, or reads 8,192: of such a job keeps the fewest in flight."""
WRITTEN_UNKNOWN = 1_024
WRITTEN_KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Where a request says the most that it may write; an embeddings request writes nothing and has none."""


def lines_at_once(weights: Iterable[int], *, fewest: int, most: int) -> int:
    """Between these, how many of the heaviest lines together are no more work than ``fewest`` heavy ones."""
    room, count = fewest * HEAVY, 0
    for one in sorted(weights, reverse=True)[:most]:
        room -= one
        if room < 0:
            break
        count += 1
    return max(fewest, count)


def weight(body: dict[str, Any], input_tokens: int) -> int:
    """The most work that a line can be, in tokens read."""
    if "messages" not in body and "max_output_tokens" not in body:
        return input_tokens
    written = next((body[key] for key in WRITTEN_KEYS if body.get(key)), WRITTEN_UNKNOWN)
    return input_tokens + WRITTEN_WEIGHT * int(written) * int(body.get("n") or 1)
