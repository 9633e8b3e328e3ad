"""What a customer may rely on when a create is answered, refused or not answered at all."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gridline.batches.requests import CreateRequest
from gridline.errors import Conflict, LimitExceeded, NotFound, Refused
from tests.simulation.history import Violation

KEY_LASTS, LOOK_LASTS = timedelta(hours=24), timedelta(minutes=30)
SLACK = timedelta(seconds=60)


@dataclass(frozen=True)
class Input:
    """A file that a customer uploaded: its lines' ids in order, and what validation must think of it."""

    id: str
    endpoint: str
    custom_ids: tuple[str, ...]
    bad: bool


@dataclass
class Key:
    """What a repeated create is known by: a key, or its look. What was sent, and the batch that an answer named."""

    request: CreateRequest
    lasts: timedelta
    tries: int = 0
    batch_id: str | None = None
    since: datetime | None = None
    """When an answer first named the batch, if that answer made it."""

    def promised(self, now: datetime) -> bool:
        """Whether a repetition must find the batch."""
        return self.since is not None and now < self.since + self.lasts - SLACK

    def answered(self, request: CreateRequest, batch_id: str, since: datetime | None) -> None:
        """An answer named a batch; when it was made is known only if this answer made it."""
        self.request, self.batch_id, self.since = request, batch_id, since


@dataclass
class Customer:
    """An account's owner."""

    name: str
    account_id: str
    files: list[Input] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    batches: list[str] = field(default_factory=list)
    keys: dict[str, Key] = field(default_factory=dict)
    top_ups: int = 0


class Create:
    """One create on its way, and what its answer must be by what was answered before."""

    def __init__(self, who: Customer, request: CreateRequest, name: str, now: datetime) -> None:
        self.said = f"creates {name} ({request.completion_window})"
        self._who, self._request, self._name, self._now = who, request, name, now
        self._known = who.keys[name]
        self._same = self._known.request == request
        self._fresh = self._known.promised(now)
        self._known.tries += 1

    def refused(self, refusal: Refused, *, open_batches: int) -> str:
        """Judge a refusal; how the history calls it."""
        if self._fresh and self._same:
            raise Violation(f"{self.said}: the repeat of an answered create was refused") from refusal
        if isinstance(refusal, LimitExceeded):
            if open_batches < (refusal.limit or {})["limit"]:
                raise Violation(f"{self.said}: only {open_batches} are open") from refusal
            return f"{self.said}: limit"
        if isinstance(refusal, Conflict) and not self._same:
            return f"{self.said}: conflict"
        if isinstance(refusal, NotFound) and self._request.input_file_id in self._who.deleted:
            return f"{self.said}: no such file"
        raise Violation(f"{self.said}: {refusal.message}") from refusal

    def unheard(self) -> None:
        """No answer came."""
        if not (self._same or self._fresh):
            # Which of two bodies the key stands for now, nobody knows.
            del self._who.keys[self._name]

    def answered(self, batch_id: str, *, replayed: bool) -> None:
        """Judge an answer, and remember it."""
        if self._fresh and not self._same:
            raise Violation(f"{self.said}: another body under a key that was answered is no conflict")
        if self._fresh and batch_id != self._known.batch_id:
            raise Violation(f"{self.said}: two batches under one key")
        if replayed and self._known.tries == 1:
            raise Violation(f"{self.said}: a first create was answered with an older batch")
        if batch_id not in self._who.batches:
            self._who.batches.append(batch_id)
        if not self._fresh:
            self._known.answered(self._request, batch_id, None if replayed else self._now)
