"""The API's objects as frozen dataclasses: amounts in whole nano-credits, instants aware and in UTC.

Unknown keys are ignored and missing ones read as null, so that an older client reads a newer API.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from gridline.money import credits_nanos

Item = TypeVar("Item")
Json = Mapping[str, Any]


OPENAI_OBJECTS = frozenset({"errors", "request_counts", "usage", "metadata"})
"""Keys of OpenAI's batch and model that hold objects."""


def extension_of(body: Json) -> Json:
    """What the platform's dialect adds to OpenAI's batch or model, whatever its key; empty where it adds nothing."""
    added = (one for key, one in body.items() if isinstance(one, Mapping) and key not in OPENAI_OBJECTS)
    return next(added, {})


def instant(seconds: float | None) -> datetime | None:
    """The instant of whole Unix seconds; None stays None."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def amount_nanos(text: str | None) -> int | None:
    """The nano-credits of a decimal text of credits; None stays None."""
    return None if text is None else credits_nanos(text)


@dataclass(frozen=True)
class Page(Generic[Item]):
    """One page of a list, in the API's order, and whether more follow."""

    data: tuple[Item, ...]
    has_more: bool

    @classmethod
    def of(cls, body: Json, read: Callable[[Json], Item]) -> "Page[Item]":
        """A list object, each entry read by ``read``."""
        return cls(tuple(read(one) for one in body["data"]), bool(body.get("has_more")))


@dataclass(frozen=True)
class Results:
    """What a batch has done since a cursor: output lines as they stand in its files, and where to go on.

    ``incomplete`` is False once the batch has ended and this was the last of it.
    """

    lines: tuple[Json, ...]
    next_cursor: str
    incomplete: bool


@dataclass(frozen=True)
class Limit:
    """A limit of the account and what is used of it; an amount of credits is a decimal text."""

    limit: int | str
    current: int | str | None


@dataclass(frozen=True)
class Account:
    """Whose token it is, what it may use, and its credit; ``limits`` by the API's names."""

    id: str
    name: str
    available_nanos: int
    held_nanos: int
    limits: Mapping[str, Limit]

    @classmethod
    def from_json(cls, body: Json) -> "Account":
        """The account object."""
        balance = body["balance"]
        return cls(
            id=body["id"],
            name=body.get("name") or "",
            available_nanos=credits_nanos(balance["available"]),
            held_nanos=credits_nanos(balance["held"]),
            limits={
                name: Limit(given["limit"], given.get("current"))
                for name, given in (body.get("limits") or {}).items()
                if given is not None
            },
        )


@dataclass(frozen=True)
class Event:
    """Something that happened to a batch, and who did it."""

    at: datetime
    kind: str
    actor: str
    details: Mapping[str, Any]

    @classmethod
    def from_json(cls, body: Json) -> "Event":
        """One entry of a batch's events."""
        moment = datetime.fromtimestamp(body["at"], UTC)
        return cls(moment, body["kind"], body.get("actor") or "", body.get("details") or {})


@dataclass(frozen=True)
class Receipt:
    """What a batch was charged and why, at the prices (nano-credits per token) copied when it was held.

    ``state`` is ``held`` until the batch ends, then ``settled``: only then are charged and returned known.
    """

    batch_id: str
    state: str
    model: str
    input_price_nanos: int
    output_price_nanos: int
    hold_nanos: int
    charged_nanos: int | None
    returned_nanos: int | None
    lines: int
    input_tokens: int
    output_tokens: int
    held_at: datetime | None
    settled_at: datetime | None

    @classmethod
    def from_json(cls, body: Json) -> "Receipt":
        """A receipt object."""
        return cls(
            batch_id=body["batch_id"],
            state=body["state"],
            model=body["model"],
            input_price_nanos=credits_nanos(body["rates"]["input_token"]),
            output_price_nanos=credits_nanos(body["rates"]["output_token"]),
            hold_nanos=credits_nanos(body["hold"]),
            charged_nanos=amount_nanos(body.get("charged")),
            returned_nanos=amount_nanos(body.get("returned")),
            lines=int(body.get("lines") or 0),
            input_tokens=int(body.get("input_tokens") or 0),
            output_tokens=int(body.get("output_tokens") or 0),
            held_at=instant(body.get("held_at")),
            settled_at=instant(body.get("settled_at")),
        )


@dataclass(frozen=True)
class FileInfo:
    """A stored file; the name is the customer's own and may hold anything."""

    id: str
    filename: str
    bytes: int
    purpose: str
    created_at: datetime | None
    expires_at: datetime | None
    body: Json = field(default_factory=dict, repr=False, compare=False)
    """The object as the API sent it."""

    @classmethod
    def from_json(cls, body: Json) -> "FileInfo":
        """A file object."""
        return cls(
            body["id"],
            body.get("filename") or "",
            int(body.get("bytes") or 0),
            body.get("purpose") or "",
            instant(body.get("created_at")),
            instant(body.get("expires_at")),
            body,
        )


@dataclass(frozen=True)
class Adapter:
    """What a fine-tuned model has of its own: its base, its rank, and what to know of it ("" for nothing)."""

    base: str
    rank: int
    note: str


@dataclass(frozen=True)
class ModelInfo:
    """A model that batches can use here; ``kind`` is chat or embedding, None where the API does not say.

    ``adapter`` is None for a base model.
    """

    id: str
    created_at: datetime | None
    owned_by: str
    kind: str | None
    adapter: Adapter | None

    @classmethod
    def from_json(cls, body: Json) -> "ModelInfo":
        """One entry of the model list."""
        extension = extension_of(body)
        own = extension.get("adapter")
        return cls(
            body["id"],
            instant(body.get("created")),
            body.get("owned_by") or "",
            extension.get("kind"),
            None if own is None else Adapter(own["base"], int(own["rank"]), own.get("note") or ""),
        )


@dataclass(frozen=True)
class Platform:
    """What the platform takes: where OpenAI's resources are, and what batches and their files may have."""

    base_path: str
    endpoints: tuple[str, ...]
    windows: tuple[str, ...]
    file_bytes_max: int
    file_lines_max: int

    @classmethod
    def from_json(cls, body: Json) -> "Platform":
        """The answer about the platform."""
        return cls(
            base_path=body["base_paths"][0],
            endpoints=tuple(body["endpoints"]),
            windows=tuple(body["completion_windows"]),
            file_bytes_max=int(body["file_bytes_max"]),
            file_lines_max=int(body["file_requests_max"]),
        )
