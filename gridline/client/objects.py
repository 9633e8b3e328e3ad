"""The API's objects as frozen dataclasses: amounts in whole nano-credits, instants aware and in UTC.

Unknown keys are ignored and missing ones read as null, so that an older client reads a newer API.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from gridline.money import credits_nanos

Item = TypeVar("Item")
Json = Mapping[str, Any]

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
STAMPS = ("created", "in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")


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
class Counts:
    """How far a batch's lines are; ``left`` is what has no result yet."""

    total: int
    completed: int
    failed: int
    cancelled: int

    @classmethod
    def from_json(cls, body: Json | None) -> "Counts":
        """``request_counts`` of a batch; null is all zeros."""
        given = body or {}
        return cls(*(int(given.get(name) or 0) for name in ("total", "completed", "failed", "cancelled")))

    @property
    def left(self) -> int:
        """Lines without a result."""
        return max(0, self.total - self.completed - self.failed - self.cancelled)


@dataclass(frozen=True)
class LineError:
    """Why validation refused; ``line`` counts physical lines of the file from 1, None for the whole batch."""

    code: str
    message: str
    param: str | None
    line: int | None

    @classmethod
    def from_json(cls, body: Json) -> "LineError":
        """One entry of ``errors.data``."""
        return cls(body.get("code") or "", body.get("message") or "", body.get("param"), body.get("line"))


@dataclass(frozen=True)
class Wait:
    """Why nothing moves, since when, and what helps: the API's own sentences."""

    reason_code: str
    reason: str
    since: datetime | None
    next_step: str | None


@dataclass(frozen=True)
class Batch:
    """One batch. ``stamps`` holds the instants that have passed, by name, e.g. ``created``."""

    id: str
    status: str
    endpoint: str
    completion_window: str
    input_file_id: str
    output_file_id: str | None
    error_file_id: str | None
    model: str | None
    stamps: Mapping[str, datetime]
    expires_at: datetime | None
    counts: Counts
    input_tokens: int
    output_tokens: int
    errors: tuple[LineError, ...]
    errors_total: int
    metadata: Mapping[str, str]
    wait: Wait | None
    hold_nanos: int | None
    cost_nanos: int | None
    error_code: str | None

    @classmethod
    def from_json(cls, body: Json) -> "Batch":
        """A batch object of the API."""
        errors = body.get("errors") or {}
        listed = tuple(LineError.from_json(one) for one in errors.get("data") or ())
        usage = body.get("usage") or {}
        extension = body.get("gridline") or {}
        stamps = {name: instant(body.get(f"{name}_at")) for name in STAMPS}
        return cls(
            id=body["id"],
            status=body["status"],
            endpoint=body.get("endpoint") or "",
            completion_window=body.get("completion_window") or "",
            input_file_id=body.get("input_file_id") or "",
            output_file_id=body.get("output_file_id"),
            error_file_id=body.get("error_file_id"),
            model=body.get("model"),
            stamps={name: moment for name, moment in stamps.items() if moment is not None},
            expires_at=instant(body.get("expires_at")),
            counts=Counts.from_json(body.get("request_counts")),
            input_tokens=int(usage.get("input_tokens") or 0),
            output_tokens=int(usage.get("output_tokens") or 0),
            errors=listed,
            errors_total=int(errors.get("total") or len(listed)),
            metadata=body.get("metadata") or {},
            wait=_wait(extension),
            hold_nanos=amount_nanos(extension.get("hold")),
            cost_nanos=amount_nanos(extension.get("cost")),
            error_code=extension.get("error_code"),
        )

    @property
    def created_at(self) -> datetime:
        """When the API accepted it."""
        return self.stamps["created"]

    @property
    def ended(self) -> bool:
        """Whether it will never change again."""
        return self.status in ENDED

    @property
    def ended_at(self) -> datetime | None:
        """When it ended, None while it is open."""
        return self.stamps.get(self.status) if self.ended else None


def _wait(extension: Json) -> Wait | None:
    if not extension.get("reason_code"):
        return None
    return Wait(
        extension["reason_code"],
        extension.get("reason") or "",
        instant(extension.get("since")),
        extension.get("next_step"),
    )


@dataclass(frozen=True)
class Account:
    """Whose token it is, what it may use, and its credit; ``limits`` as the API names them."""

    id: str
    name: str
    available_nanos: int
    held_nanos: int
    limits: Mapping[str, Any]

    @classmethod
    def from_json(cls, body: Json) -> "Account":
        """The account object."""
        balance = body["balance"]
        return cls(
            body["id"],
            body.get("name") or "",
            credits_nanos(balance["available"]),
            credits_nanos(balance["held"]),
            body.get("limits") or {},
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
    """What a batch was charged and why: prices are nano-credits per token, copied when it was held."""

    batch_id: str
    model: str | None
    lines: int
    input_tokens: int
    output_tokens: int
    input_price_nanos: int
    output_price_nanos: int
    hold_nanos: int
    charged_nanos: int
    returned_nanos: int
    at: datetime | None

    @classmethod
    def from_json(cls, body: Json) -> "Receipt":
        """A receipt object."""
        return cls(
            batch_id=body["batch_id"],
            model=body.get("model"),
            lines=int(body["lines"]),
            input_tokens=int(body["input_tokens"]),
            output_tokens=int(body["output_tokens"]),
            input_price_nanos=credits_nanos(body["input_price"]),
            output_price_nanos=credits_nanos(body["output_price"]),
            hold_nanos=credits_nanos(body["hold"]),
            charged_nanos=credits_nanos(body["charged"]),
            returned_nanos=credits_nanos(body["returned"]),
            at=instant(body.get("at")),
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
        )


@dataclass(frozen=True)
class ModelInfo:
    """A model that batches can use here."""

    id: str
    created_at: datetime | None
    owned_by: str

    @classmethod
    def from_json(cls, body: Json) -> "ModelInfo":
        """One entry of the model list."""
        return cls(body["id"], instant(body.get("created")), body.get("owned_by") or "")
