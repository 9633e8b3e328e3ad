"""Which fine-tuned models the lines of one batch may name, and whether they go together. Refusals say which rule it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from gridline.limits import ADAPTERS_PER_BATCH_MAX
from gridline.lines.adapters import ADAPTER_PREFIX, Adapter, count_max
from gridline.lines.card import Card
from gridline.lines.errors import LineRefused
from gridline.lines.fields import shown

MIB = 1024 * 1024


@dataclass(frozen=True)
class Offer:
    """The fine-tuned models of one account. Those of others are not known here: they read as if there were none."""

    own: Mapping[str, Adapter] = field(default_factory=dict)
    """Active ones by id."""
    bases: Mapping[str, Card] = field(default_factory=dict)
    """Cards that adapters are served on; one may be no model that lines can name alone."""
    retired: frozenset[str] = frozenset()
    download_only: frozenset[str] = frozenset()
    """Bases whose fine-tunes are not served here."""


class Mix:
    """The fine-tuned models that a batch's lines name."""

    def __init__(self, offer: Offer) -> None:
        self.taken: dict[str, Adapter] = {}
        """By id those that lines named and may name."""
        self._offer = offer
        self._seen: set[str] = set()

    def take(self, name: str, card: Card | None, endpoint: str) -> Card:
        """The card of the base of one that no line named yet, which is the batch's if that is known.

        Raises:
            LineRefused: it cannot be named, alone or with those that lines named before.
        """
        if len(self._seen) == ADAPTERS_PER_BATCH_MAX and name not in self._seen:
            _refuse(
                name,
                f"it is one more than the {ADAPTERS_PER_BATCH_MAX} fine-tuned models that a batch may name. Split the "
                "file by model.",
            )
        self._seen.add(name)
        adapter = self._own(name)
        base = self._offer.bases.get(adapter.base)
        if base is None:
            _refuse(name, f"its base {adapter.base} is not served here at the moment. Ask the operator.")
        if endpoint not in base.endpoints:
            _refuse(
                name, f"its base {adapter.base} does not serve {endpoint}, which is this batch's endpoint."
            )
        if card is not None and card.id != base.id:
            _refuse(
                name,
                f"its base is {base.id}, and this batch's is {card.id}. A batch has one base model: split the file by base.",
            )
        self._check_together(adapter, base)
        self.taken[name] = adapter
        return base

    def _own(self, name: str) -> Adapter:
        adapter = self._offer.own.get(name)
        if adapter is None:
            _refuse(name, self._why_not(name))
        return adapter

    def _why_not(self, name: str) -> str:
        base = name.removeprefix(ADAPTER_PREFIX).partition(":")[0]
        if base in self._offer.download_only:
            return f"fine-tunes of {base} can be downloaded only and are not served here. Use another base."
        if name in self._offer.retired:
            return "it was retired and is not active any more. Name another one of your fine-tuned models."
        return (
            "your account has no active fine-tuned model of this id. It does not exist, was deactivated, or belongs to "
            "another account."
        )

    def _check_together(self, adapter: Adapter, base: Card) -> None:
        """Whether the base serves it beside those that were taken."""
        every = [*self.taken.values(), adapter]
        highest = max(one.rank for one in every)
        most = count_max(base.adapters_by_rank, [highest])
        if len(every) > most:
            _refuse(
                adapter.id,
                f"with it the batch has {len(every)} fine-tuned models, the highest of rank {highest}, and {base.id} "
                f"serves {most} together at that rank. Split the file by model.",
            )
        size = sum(one.bytes for one in every)
        if size > base.adapter_bytes_max:
            _refuse(
                adapter.id,
                f"with it the batch's fine-tuned models have {-(-size // MIB)} MiB of weights, and {base.id} serves "
                f"{base.adapter_bytes_max // MIB} MiB together. Split the file by model.",
            )


def _refuse(name: str, why: str) -> NoReturn:
    raise LineRefused(
        f"The provided model {shown(name)} is not supported by the Batch API: {why}",
        code="model_not_found",
        param="body.model",
    )
