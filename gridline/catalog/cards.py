"""Model cards: what each model is, serves and costs here, from catalog.toml. Knows no engine and no money."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from gridline.catalog import checking, qualification
from gridline.catalog.errors import CatalogueInvalid
from gridline.customers import audit
from gridline.db.work import Work
from gridline.errors import NotFound
from gridline.profiles.profile import Profile, current

CATALOGUE = Path(__file__).with_name("catalog.toml")


@dataclass(frozen=True)
class ModelCard:
    """One model at one commit. Prices are whole nano-credits per token; lengths are tokens.

    The ``batch_`` prices are what a batch pays in dialects that look at them; None: a share of the others.
    ``gpu_seconds_per_batch_max`` is the GPU time that a batch of it may use; None: as much as its window holds.
    ``adapters_by_rank`` is how many adapters a batch may mix in, as (highest rank, adapters) in rising ranks; empty: none.
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
    batch_input_price_nanos: int | None = None
    batch_output_price_nanos: int | None = None
    gpu_seconds_per_batch_max: int | None = None
    adapters_by_rank: tuple[tuple[int, int], ...] = ()
    adapter_bytes_max: int = 0

    def copy(self) -> dict[str, Any]:
        """The card as JSON, as batches and holds keep it: later price changes do not reach them."""
        return {name: _as_json(value) for name, value in asdict(self).items()}

    @classmethod
    def from_copy(cls, copy: Mapping[str, Any]) -> "ModelCard":
        """The card that ``copy`` wrote; keys of other versions are passed over."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: _from_json(value) for name, value in copy.items() if name in known})


def _as_json(value: Any) -> Any:
    return [_as_json(one) for one in value] if isinstance(value, tuple) else value


def _from_json(value: Any) -> Any:
    return tuple(_from_json(one) for one in value) if isinstance(value, list) else value


def read_catalogue(text: str) -> dict[str, ModelCard]:
    """Cards by id at their standard rates, in the order of the text.

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


def catalogue() -> dict[str, ModelCard]:
    """Every card of catalog.toml as this platform's dialect sells it, read once a process.

    Raises:
        CatalogueInvalid: see ``read_catalogue``, and a price of which the dialect's share is no whole number.
    """
    return _sold(current())


@cache
def _sold(profile: Profile) -> dict[str, ModelCard]:
    cards = read_catalogue(CATALOGUE.read_text(encoding="utf-8"))
    return {name: sold(card, profile) for name, card in cards.items()}


def sold(card: ModelCard, profile: Profile) -> ModelCard:
    """The card as a dialect sells it: on the endpoints that the dialect lists, and at its price.

    Raises:
        CatalogueInvalid: the dialect's share of a price is no whole number of nano-credits.
    """
    return replace(
        card,
        endpoints=tuple(one for one in card.endpoints if one in profile.endpoints),
        input_price_nanos=_price(card.input_price_nanos, card.batch_input_price_nanos, profile),
        output_price_nanos=_price(card.output_price_nanos, card.batch_output_price_nanos, profile),
    )


def _price(standard_nanos: int, batch_nanos: int | None, profile: Profile) -> int:
    """What a token costs in the dialect: the card's batch price where it counts, else a share of the standard rate."""
    if profile.listed_batch_prices and batch_nanos is not None:
        return batch_nanos
    price, rest = divmod(standard_nanos * profile.price_percent, 100)
    if rest:
        raise CatalogueInvalid(
            f"{profile.price_percent}% of {standard_nanos} nano-credits is no whole price: profile {profile.name!r} "
            "cannot sell at it."
        )
    return price


@cache
def download_only() -> frozenset[str]:
    """Models whose fine-tunes customers may have, but which are not served here."""
    names: list[str] = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))["adapters"]["download_only"]
    return frozenset(names)


def listed(work: Work) -> list[ModelCard]:
    """The cards that customers may use: offered, on an endpoint here, and qualified at the commit the catalogue names."""
    passed = qualification.passed_commits(work)
    return [
        card
        for card in catalogue().values()
        if card.offered and card.endpoints and (card.id, card.commit) in passed
    ]


def qualified_card(work: Work, model_id: str) -> ModelCard | None:
    """The card of a listed model; None for an unknown or unlisted one."""
    return next((card for card in listed(work) if card.id == model_id), None)


def qualified_bases(work: Work) -> dict[str, ModelCard]:
    """By id the cards that adapters can be served on: qualified, whether or not customers may use them alone."""
    passed = qualification.passed_commits(work)
    return {
        card.id: card
        for card in catalogue().values()
        if card.adapters_by_rank and (card.id, card.commit) in passed
    }


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


def withdraw(work: Work, model_id: str, *, why: str, actor: str) -> bool:
    """List the model no more until it qualifies again. False when it was not qualified; then nothing has changed.

    Batches that were validated before go on: they hold a copy of the card.

    Raises:
        NotFound: the catalogue has no such model.
        InvalidRequest: no reason, or one that cannot be kept.
    """
    card = catalogue().get(model_id)
    if card is None:
        raise NotFound(f"The catalogue has no model {model_id!r}. See 'gridline models list'.")
    said = audit.reason(why)
    if not qualification.withdraw(work, model=card.id, commit=card.commit, why=said):
        return False
    details = {"model": card.id, "commit": card.commit, "why": said}
    audit.record(work, account_id=None, actor=actor, action="model.withdrawn", details=details)
    return True
