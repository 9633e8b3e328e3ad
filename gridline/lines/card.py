"""What a line must know of its model. The catalogue's cards have this shape; GPU jobs never load the catalogue."""

from typing import Any, Protocol


class Card(Protocol):
    """A model card as the lines see it; prices in whole nano-credits per token, lengths in tokens."""

    @property
    def id(self) -> str:
        """The id that a line names in ``body.model``, which is also the name the engine serves."""

    @property
    def commit(self) -> str:
        """What pins the weights."""

    @property
    def dtype(self) -> str:
        """Number format of the weights."""

    @property
    def kind(self) -> str:
        """Either chat or embedding."""

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Endpoints that the model serves."""

    @property
    def context_tokens(self) -> int:
        """Prompt and answer together, at most."""

    @property
    def output_tokens_max(self) -> int:
        """Tokens written per choice, at most."""

    @property
    def dimensions(self) -> int | None:
        """Native size of an embedding."""

    @property
    def input_price_nanos(self) -> int:
        """Per prompt token."""

    @property
    def output_price_nanos(self) -> int:
        """Per token written."""

    @property
    def engine_arguments(self) -> tuple[str, ...]:
        """How the engine is started."""

    @property
    def partition_tokens(self) -> int:
        """Tokens that make a partition of a few minutes."""

    @property
    def adapters_by_rank(self) -> tuple[tuple[int, int], ...]:
        """How many adapters go together, as (highest rank, adapters) in rising ranks."""

    @property
    def adapter_bytes_max(self) -> int:
        """Bytes of the adapters' weights together, at most."""

    def copy(self) -> dict[str, Any]:
        """The whole card as JSON."""
