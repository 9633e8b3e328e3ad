"""Model cards: what each model is, serves and costs, from catalog.toml. Knows no engine and no money."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from gridline.catalog import checking, qualification
from gridline.catalog.errors import CatalogueInvalid
from gridline.db.work import Work

CATALOGUE = Path(__file__).with_name("catalog.toml")


@dataclass(frozen=True)
class ModelCard:
    """One model at one commit. Prices are whole nano-credits per token; lengths are tokens.

    ``gpu_seconds_per_batch_max`` is the GPU time that a batch of it may use; None: as much as its window holds.
    """

    id: str
    repository: str
    commit: str
    dtype: str
    licence: str
    kind: str
    endpoints: tuple[str, ...]
    context_tokens: int
    output_tokens_max: int
    dimensions: int | None
    input_price_nanos: int
    output_price_nanos: int
    engine_arguments: tuple[str, ...]
    partition_tokens: int
    package: str | None = None
    offered: bool = True
    gpu_seconds_per_batch_max: int | None = None

    def copy(self) -> dict[str, Any]:
        """The card as JSON, as batches and holds keep it: later price changes do not reach them."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    @classmethod
    def from_copy(cls, copy: Mapping[str, Any]) -> "ModelCard":
        """The card that ``copy`` wrote; keys of other versions are passed over."""
        known = {one.name for one in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in copy.items()
        }
        return cls(**{name: value for name, value in values.items() if name in known})


def read_catalogue(text: str) -> dict[str, ModelCard]:
    """Cards by id, in the order of the text.

    Raises:
        CatalogueInvalid: not TOML, or an entry that cannot be used; the message names entry and key.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogueInvalid(f"catalog.toml is not TOML: {error}") from error
    defaults = data.get("defaults", {})
    cards = {}
    for model_id, entry in data.get("models", {}).items():
        values = {"dimensions": None, "package": None, **defaults, **entry}
        problem = checking.problem_of(model_id, values)
        if problem:
            raise CatalogueInvalid(f"catalog.toml, model {model_id!r}: {problem}")
        cards[model_id] = ModelCard.from_copy({"id": model_id, **values})
    return cards


@cache
def catalogue() -> dict[str, ModelCard]:
    """Every card of catalog.toml, read once a process.

    Raises:
        CatalogueInvalid: see ``read_catalogue``.
    """
    return read_catalogue(CATALOGUE.read_text(encoding="utf-8"))


def listed(work: Work) -> list[ModelCard]:
    """The cards that customers may use: offered, and qualified at the commit the catalogue names."""
    passed = qualification.passed_commits(work)
    return [card for card in catalogue().values() if card.offered and (card.id, card.commit) in passed]


def qualified_card(work: Work, model_id: str) -> ModelCard | None:
    """The card of a listed model; None for an unknown or unlisted one."""
    return next((card for card in listed(work) if card.id == model_id), None)


def record_qualification(
    work: Work,
    card: ModelCard,
    *,
    engine_version: str,
    passed: bool,
    tokens_per_second: int,
    details: dict[str, Any],
) -> None:
    """Write down one qualification run of the card's commit; the newest one decides whether it is listed."""
    qualification.record(
        work,
        model=card.id,
        commit=card.commit,
        engine_version=engine_version,
        passed=passed,
        tokens_per_second=tokens_per_second,
        details=details,
    )
