"""Fine-tuned models (LoRA adapters) as lines and GPU jobs see them, and how many of which rank go together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

ADAPTER_PREFIX = "ft:"


@dataclass(frozen=True)
class Adapter:
    """One adapter of one account, as a batch and its partitions keep it."""

    id: str
    """What a line names in ``body.model``: ``ft:<base>:<name>:<short id>``."""
    base: str
    """Id of the model that it belongs to, whose rates it has."""
    rank: int
    bytes: int
    """Of its weights."""
    key: str
    """Where its weights are in the object store."""
    sha256: str
    """Of its weights."""
    config: Mapping[str, Any]
    """Its PEFT configuration, with the keys that an engine reads."""

    def as_dict(self) -> dict[str, Any]:
        """The adapter as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Adapter":
        """The adapter that ``as_dict`` wrote."""
        return cls(**values)


def count_max(by_rank: Sequence[Sequence[int]], ranks: Iterable[int]) -> int:
    """How many adapters go together when these are their ranks; 0 when one is above all that is served.

    Args:
        by_rank: (highest rank, adapters) in rising ranks, as on the base's card.
        ranks: of the adapters.
    """
    highest = max(ranks, default=0)
    return next((count for rank, count in by_rank if highest <= rank), 0)
