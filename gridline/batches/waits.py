"""Stores why a batch waits, in the transaction of whoever decided it, and tells its waits so far. Pages only read them.

Every change is an event, so the history of a batch's waits is what its events say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gridline.batches import events
from gridline.batches.reasons import ReasonCode
from gridline.batches.states import TERMINAL
from gridline.batches.tables import Batch, BatchEvent
from gridline.db.work import Work

BEGINS = "waiting"
ENDS = "went_on"


@dataclass(frozen=True)
class Wait:
    """One wait of a batch; ``until`` is None while it lasts, and never before ``since``."""

    code: str
    since: datetime
    until: datetime | None


def set_reason(work: Work, batch: Batch, code: ReasonCode | None) -> bool:
    """Store the reason, or clear it with None. True if it changed: ``since`` then starts anew.

    While an operator holds the batch that is its reason: another one is kept for when it is released.
    """
    if batch.operator_hold_at is not None and batch.ended_at is None and code != ReasonCode.HELD_BY_OPERATOR:
        batch.reason_under_hold = code
        return False
    before = batch.reason_code
    if before == code:
        return False
    batch.reason_code = code
    batch.reason_since = work.now if code else None
    if code is not None:
        events.record(work, batch, BEGINS, reason_code=str(code))
    elif batch.ended_at is None:
        events.record(work, batch, ENDS, reason_code=before)
    return True


def true_reason(batch: Batch) -> str | None:
    """Why the batch would wait if no operator held it."""
    return batch.reason_under_hold if batch.operator_hold_at is not None else batch.reason_code


def history(timeline: Sequence[BatchEvent]) -> list[Wait]:
    """The waits that a batch's events tell, oldest first. From its creation a batch waits to start."""
    found: list[Wait] = []
    for event in timeline:
        if event.kind == "created":
            found.append(Wait(ReasonCode.STARTING, event.at, None))
        elif event.kind == BEGINS:
            _close(found, event.at)
            found.append(Wait(str(event.details["reason_code"]), event.at, None))
        elif event.kind == ENDS or event.kind in TERMINAL:
            _close(found, event.at)
    return found


def _close(found: list[Wait], at: datetime) -> None:
    """End the wait that lasts. A clock that was set back makes it short, never negative."""
    if found and found[-1].until is None:
        found[-1] = Wait(found[-1].code, found[-1].since, max(at, found[-1].since))
