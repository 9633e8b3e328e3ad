"""Batches as operators read them, over all accounts: a list to filter, one with its waits, partitions and attempts.

Sizes, counts and reasons only: what customers sent and what models answered is read by nobody here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, select

from gridline.batches import events, waits
from gridline.batches.tables import Attempt, Batch, BatchEvent, Partition, RunRequest
from gridline.capacity import gpu_time
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.errors import NotFound
from gridline.files.tables import File
from gridline.ids import is_id
from gridline.ledger import reading
from gridline.ledger.tables import Hold, Resolution
from gridline.operate.desk import overview

PAGE = 50
PARTITIONS_MAX = 100
"""Partitions that a page lists; those that are not done come first."""
ATTEMPTS_MAX = 100
"""Attempts that a page lists, the newest first."""

MOVING = "none"
"""The filter's word for batches without a reason."""


@dataclass(frozen=True)
class Filter:
    """What a list of batches is narrowed to; empty: not at all."""

    status: str = ""
    reason: str = ""
    account_id: str = ""


class Row(NamedTuple):
    """A batch in the list."""

    sequence: int
    id: str
    account_id: str
    account: str
    status: str
    reason_code: str | None
    reason_since: datetime | None
    created_at: datetime
    model: str | None
    total: int
    completed: int
    failed: int
    hold_nanos: int | None
    charged_nanos: int | None


@dataclass(frozen=True)
class Shown:
    """One batch's page."""

    batch: Batch
    account: str
    filename: str
    hold: Hold | None
    charge: Resolution | None
    refunded_nanos: int
    gpu_seconds: int
    waits: list[waits.Wait]
    events: list[BatchEvent]
    parts: dict[str, int]
    partitions: Sequence[Partition]
    attempts: Sequence[Attempt]
    leases: list[overview.LiveLease]
    runs_asked: int
    """The newest ask for its run: a click counts only if nobody has asked since the page was made."""
    run_is_due: bool
    """Whether the keeper has such an ask before it."""


def page(
    work: Work, wanted: Filter, *, before: int | None = None, limit: int = PAGE
) -> tuple[list[Row], int | None]:
    """Batches, newest first, older than the sequence ``before``; and what to go on before, None on the last page."""
    statement = (
        select(
            Batch.sequence, Batch.id, Batch.account_id, Account.name, Batch.status, Batch.reason_code,
            Batch.reason_since, Batch.created_at, Batch.model, Batch.total, Batch.completed, Batch.failed,
            Hold.amount_nanos, Resolution.charged_nanos,
        )
        .join(Account, Account.id == Batch.account_id)
        .outerjoin(Hold, Hold.batch_id == Batch.id)
        .outerjoin(Resolution, Resolution.batch_id == Batch.id)
    )  # fmt: skip
    if wanted.status:
        statement = statement.where(Batch.status == wanted.status)
    if wanted.reason == MOVING:
        statement = statement.where(Batch.reason_code.is_(None), Batch.ended_at.is_(None))
    elif wanted.reason:
        statement = statement.where(Batch.reason_code == wanted.reason)
    if wanted.account_id:
        statement = statement.where(Batch.account_id == wanted.account_id)
    if before is not None:
        statement = statement.where(Batch.sequence < before)
    rows = work.session.execute(statement.order_by(Batch.sequence.desc()).limit(limit + 1))
    found = [Row._make(row) for row in rows]
    return found[:limit], found[limit - 1].sequence if len(found) > limit else None


def known(work: Work, batch_id: str) -> Batch:
    """The batch, of whatever account.

    Raises:
        NotFound: no such batch.
    """
    # Text that is no id never reaches the database: it could hold what a database text cannot.
    batch = work.session.get(Batch, batch_id) if is_id("batch", batch_id) else None
    if batch is None:
        raise NotFound(f"There is no batch {batch_id!r}.")
    return batch


def show(work: Work, batch_id: str) -> Shown:
    """One batch with all that tells why it stands where it stands.

    Raises:
        NotFound: no such batch.
    """
    batch = known(work, batch_id)
    timeline = events.timeline(work, account_id=batch.account_id, batch_id=batch_id)
    return Shown(
        batch=batch,
        account=work.session.get_one(Account, batch.account_id).name,
        filename=work.session.get_one(File, batch.input_file_id).filename,
        hold=reading.hold_of(work, batch_id),
        charge=reading.resolution_of(work, batch_id),
        refunded_nanos=reading.refunded(work, batch_id),
        gpu_seconds=int(gpu_time.used_seconds(work, batch_id, work.now)),
        waits=waits.history(timeline),
        events=timeline,
        parts=_parts(work, batch_id),
        partitions=_partitions(work, batch_id),
        attempts=_attempts(work, batch_id),
        leases=overview.live_leases(work, batch_id),
        runs_asked=runs_asked(work, batch_id),
        run_is_due=run_is_due(work, batch_id),
    )


def runs_asked(work: Work, batch_id: str) -> int:
    """The number of the newest ask for the batch's run; 0 before the first."""
    newest = select(func.max(RunRequest.sequence)).where(RunRequest.batch_id == batch_id)
    return work.session.scalar(newest) or 0


def run_is_due(work: Work, batch_id: str) -> bool:
    """Whether the keeper has not yet brought an ask for the batch's run to Airflow."""
    due = select(func.count()).where(RunRequest.batch_id == batch_id, RunRequest.done_at.is_(None))
    return bool(work.session.scalar(due))


def _parts(work: Work, batch_id: str) -> dict[str, int]:
    rows = work.session.execute(
        select(Partition.state, func.count())
        .where(Partition.batch_id == batch_id)
        .group_by(Partition.state)
        .order_by(Partition.state)
    )
    return {row[0]: row[1] for row in rows}


def _partitions(work: Work, batch_id: str) -> Sequence[Partition]:
    return work.session.scalars(
        select(Partition)
        .where(Partition.batch_id == batch_id)
        .order_by(Partition.state == "done", Partition.number)
        .limit(PARTITIONS_MAX)
    ).all()


def _attempts(work: Work, batch_id: str) -> Sequence[Attempt]:
    return work.session.scalars(
        select(Attempt)
        .where(Attempt.batch_id == batch_id)
        .order_by(Attempt.started_at.desc(), Attempt.partition, Attempt.number)
        .limit(ATTEMPTS_MAX)
    ).all()
