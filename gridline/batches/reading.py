"""Reading batches: one, a page, and the object that the API shows. Every read is of one account."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, select, tuple_

from gridline.batches.reasons import REASONS, ReasonCode, sentence
from gridline.batches.tables import Batch
from gridline.clock import unix
from gridline.db.work import Work
from gridline.errors import NotFound
from gridline.ledger.tables import Hold, Resolution
from gridline.money import credits_text
from gridline.profiles.profile import current

TIMESTAMPS = (
    "created_at", "in_progress_at", "expires_at", "finalizing_at", "completed_at", "failed_at", "expired_at",
    "cancelling_at", "cancelled_at",
)  # fmt: skip


class _Shown(NamedTuple):
    """What the object shows of a batch: columns of ``batches`` by name, then its hold and what was charged."""

    id: str
    endpoint: str
    model: str | None
    errors: list[Any] | None
    errors_total: int
    input_file_id: str
    completion_window: str
    status: str
    output_file_id: str | None
    error_file_id: str | None
    total: int
    completed: int
    failed: int
    cancelled: int
    input_tokens: int
    output_tokens: int
    batch_metadata: dict[str, Any] | None
    created_at: datetime
    in_progress_at: datetime | None
    expires_at: datetime
    finalizing_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None
    expired_at: datetime | None
    cancelling_at: datetime | None
    cancelled_at: datetime | None
    reason_code: str | None
    reason_since: datetime | None
    error_code: str | None
    operator_hold_note: str | None
    hold_nanos: int | None
    charged_nanos: int | None


_SHOWN: Select[*tuple[Any, ...]] = (
    select(
        *(getattr(Batch, name) for name in _Shown._fields[:-2]), Hold.amount_nanos, Resolution.charged_nanos
    )
    .select_from(Batch)
    .outerjoin(Hold, Hold.batch_id == Batch.id)
    .outerjoin(Resolution, Resolution.batch_id == Batch.id)
)
_SHOWN_BY_ID = _SHOWN.where(Batch.id == bindparam("batch_id"), Batch.account_id == bindparam("account_id"))


def get(work: Work, *, account_id: str, batch_id: str) -> Batch:
    """An account's batch.

    Raises:
        NotFound: missing and foreign alike.
    """
    batch = work.session.scalars(
        select(Batch).where(Batch.id == batch_id, Batch.account_id == account_id)
    ).one_or_none()
    if batch is None:
        raise _missing(batch_id)
    return batch


def page(
    work: Work, *, account_id: str, after: str | None, limit: int, explained: bool = False
) -> tuple[list[dict[str, Any]], bool]:
    """Up to ``limit`` batch objects, newest first, after the given id; and whether there are more.

    ``explained``: as in ``show``.

    Raises:
        NotFound: the cursor is no batch of this account.
    """
    rows = _SHOWN.where(Batch.account_id == account_id)
    if after is not None:
        cursor = get(work, account_id=account_id, batch_id=after)
        rows = rows.where(tuple_(Batch.created_at, Batch.sequence) < (cursor.created_at, cursor.sequence))
    rows = rows.order_by(Batch.created_at.desc(), Batch.sequence.desc()).limit(limit + 1)
    found = work.session.execute(rows).all()
    shown = [_object(_Shown._make(row), explained=explained) for row in found[:limit]]
    return shown, len(found) > limit


def show(work: Work, *, account_id: str, batch_id: str, explained: bool = False) -> dict[str, Any]:
    """An account's batch as the API shows it, in one statement: what a poll costs.

    ``explained``: with all that is known of it as ``explanation``, not with what the dialect says.

    Raises:
        NotFound: missing and foreign alike.
    """
    row = work.first(_SHOWN_BY_ID, account_id=account_id, batch_id=batch_id)
    if row is None:
        raise _missing(batch_id)
    return _object(_Shown._make(row), explained=explained)


def batch_object(work: Work, batch: Batch) -> dict[str, Any]:
    """The batch as the API shows it: every key of OpenAI's object, null when unset, and the dialect's extension."""
    work.session.flush()
    return show(work, account_id=batch.account_id, batch_id=batch.id)


def _missing(batch_id: str) -> NotFound:
    return NotFound(f"No batch found with id '{batch_id}'.", param="batch_id")


def _object(batch: _Shown, *, explained: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "model": batch.model,
        "errors": _errors(batch),
        "input_file_id": batch.input_file_id,
        "completion_window": batch.completion_window,
        "status": batch.status,
        "output_file_id": batch.output_file_id,
        "error_file_id": batch.error_file_id,
        "request_counts": {
            "total": batch.total,
            "completed": batch.completed,
            "failed": batch.failed,
            "cancelled": batch.cancelled,
        },
        "usage": {
            "input_tokens": batch.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": batch.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": batch.input_tokens + batch.output_tokens,
        },
        "metadata": batch.batch_metadata,
    }
    shown |= {name: unix(getattr(batch, name)) for name in TIMESTAMPS}
    if explained:
        shown["explanation"] = _facts(batch)
    else:
        shown[current().extension] = _extension(batch)
    return shown


def _errors(batch: _Shown) -> dict[str, Any] | None:
    if batch.errors is None:
        return None
    return {"object": "list", "data": batch.errors, "total": batch.errors_total}


def _extension(batch: _Shown) -> dict[str, Any]:
    """What the dialect says of a batch beside OpenAI's keys."""
    profile, facts = current(), _facts(batch)
    return dict(profile.batch_constants) | {name: facts[name] for name in profile.batch_facts}


def _facts(batch: _Shown) -> dict[str, Any]:
    code = ReasonCode(batch.reason_code) if batch.reason_code else None
    return {
        "reason": sentence(code, batch.operator_hold_note) if code else None,
        "reason_code": batch.reason_code,
        "since": unix(batch.reason_since),
        "next_step": REASONS[code].next_step if code else None,
        "hold": None if batch.hold_nanos is None else credits_text(batch.hold_nanos),
        "cost": None if batch.charged_nanos is None else credits_text(batch.charged_nanos),
        "error_code": batch.error_code,
    }
