"""The batch object: one frozen dataclass with its counts, line errors and wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gridline.client.objects import Json, amount_nanos, extension_of, instant

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
STAMPS = ("created", "in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")


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
    body: Json = field(default_factory=dict, repr=False, compare=False)
    """The object as the API sent it."""

    @classmethod
    def from_json(cls, body: Json) -> "Batch":
        """A batch object of the API."""
        errors = body.get("errors") or {}
        listed = tuple(LineError.from_json(one) for one in errors.get("data") or ())
        usage = body.get("usage") or {}
        extension = extension_of(body)
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
            body=body,
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
