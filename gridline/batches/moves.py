"""The only file that changes a batch's status. Every move is one legal edge, with its timestamp and event."""

from datetime import datetime
from typing import Any

from sqlalchemy import exists, func, select

from gridline.batches import events, waits
from gridline.batches.states import EDGES, TERMINAL, Status, Waiting
from gridline.batches.tables import Batch, RunRequest
from gridline.customers import accounts
from gridline.db.work import Work
from gridline.errors import InvariantBroken
from gridline.notices import outbox


def locked(work: Work, batch_id: str) -> Batch:
    """The batch's row, locked until the transaction ends: the first lock of everything that changes a batch."""
    return work.session.scalars(
        select(Batch).where(Batch.id == batch_id).with_for_update().execution_options(populate_existing=True)
    ).one()


def move(work: Work, batch: Batch, to: Status, *, actor: str = events.KEEPER, **details: Any) -> None:
    """Take one edge. An end frees the account's open slot and clears the wait in the same transaction.

    Raises:
        InvariantBroken: the edge is not in the table, or the batch would fail although a line ran.
    """
    source = Status(batch.status)
    if to not in EDGES[source]:
        raise InvariantBroken(f"Batch {batch.id} cannot go from {source} to {to}.")
    if to is Status.FAILED and batch.any_line_ran:
        raise InvariantBroken(f"Batch {batch.id} cannot fail: a line has run.")
    batch.status = to
    # Every status but the first has its own timestamp, set once.
    moment = _moment(work, batch)
    setattr(batch, f"{to}_at", moment)
    events.record(work, batch, str(to), actor=actor, **details)
    if to in TERMINAL:
        _end(work, batch, moment)
    work.notify("batches")


def _moment(work: Work, batch: Batch) -> datetime:
    """Now, or the last move's moment where the clock was set back since: a batch's timestamps are in order."""
    passed = (batch.in_progress_at, batch.finalizing_at, batch.cancelling_at)
    return max(work.now, batch.created_at, *(one for one in passed if one is not None))


def _end(work: Work, batch: Batch, moment: datetime) -> None:
    batch.ended_at = moment
    batch.waiting = None
    waits.set_reason(work, batch, None)
    accounts.slot_give(work, batch.account_id)
    outbox.batch_ended(work, batch.id, account_id=batch.account_id, status=batch.status)
    # Its GPU and what is left of its hold are free: for whoever waits for them.
    work.notify("capacity")
    work.notify("credits")


def request_run(work: Work, batch: Batch, kind: str, *, from_task: str | None = None) -> None:
    """Ask the keeper, through its outbox, to ``start`` or ``resume`` the batch's run."""
    work.session.add(
        RunRequest(
            batch_id=batch.id, account_id=batch.account_id, kind=kind, from_task=from_task,
            created_at=work.now, not_before=work.now,
        )
    )  # fmt: skip
    work.notify("runs")


def park(work: Work, batch: Batch) -> None:
    """Let the batch's run end: the batch waits without one until the keeper asks for its run again."""
    asked = select(func.max(RunRequest.sequence)).where(RunRequest.batch_id == batch.id)
    batch.parked_after = work.session.scalar(asked) or 0
    batch.waiting = Waiting.PARKED


def stays_parked(work: Work, batch: Batch) -> bool:
    """Whether the batch is parked and nobody has asked for its run since.

    A task that finds this so is late: a copy that stood still while its run ended. If it took the batch out of its
    place, the batch would have no run and nobody would resume it.
    """
    if batch.waiting != Waiting.PARKED:
        return False
    asked = exists().where(RunRequest.batch_id == batch.id, RunRequest.sequence > batch.parked_after)
    return not work.session.scalar(select(asked))
