"""Bugs to plant into production's modules: each breaks one promise that some line of them keeps."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest

from gridline import storage
from gridline.batches import cancelling, endings, finishing, holding, intake, moves, results
from gridline.batches.states import TERMINAL, Status
from gridline.batches.tables import Batch
from gridline.capacity import admission, allocator, attempts, leases
from gridline.customers import accounts
from gridline.db.work import Work, unit_of_work
from gridline.files import keeping
from gridline.files.tables import File
from gridline.ledger import holding as ledger_holding
from gridline.ledger import settling
from gridline.ledger.errors import InsufficientCredit
from gridline.ledger.tables import Hold
from gridline.lines.segments import read_rows
from gridline.storage import layout
from gridline.usage.charging import charge_nanos

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Bug:
    """A bug, and the words by which it is found."""

    name: str
    plant: Plant
    found: str


def blind_end(patch: pytest.MonkeyPatch) -> None:
    """The ending transaction does not look whether the batch has ended."""

    def end(batch_id: str, ending: Any, collation: Any) -> str:
        with unit_of_work() as work:
            batch = moves.locked(work, batch_id)
            if collation is not None:
                results.book(work, batch, collation)
            moves.move(work, batch, ending.status)
            return batch.status

    patch.setattr(finishing, "_end", end)


def slot_twice(patch: pytest.MonkeyPatch) -> None:
    """An end gives the account's slot back twice."""
    once = accounts.slot_give

    def twice(work: Work, account_id: str) -> None:
        once(work, account_id)
        if accounts.get(work, account_id).open_batches:
            once(work, account_id)

    patch.setattr(accounts, "slot_give", twice)


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """A job's end gives back whatever lease its partition has now."""
    real = attempts.end

    def end(batch_id: str, number: int, lease_id: str, job_exit: Any) -> str:
        with unit_of_work() as work:
            lease = leases.live(work, batch_id, number)
            theirs = lease_id if lease is None else lease.id
        return real(batch_id, number, theirs, job_exit)

    patch.setattr(attempts, "end", end)


def every_row_charged(patch: pytest.MonkeyPatch) -> None:
    """The charge counts all that engines wrote, not what the output file delivers."""
    real = results.book

    def book(work: Work, batch: Batch, collation: Any) -> None:
        keys = storage.store().list(f"{layout.batch_prefix(batch.id)}parts/")
        rows = [row for key in keys if layout.is_segment(key) for row in read_rows(storage.store().read(key))]
        tokens = [sum(getattr(row, f"{way}_tokens") for row in rows) for way in ("input", "output")]
        real(work, batch, replace(collation, input_tokens=tokens[0], output_tokens=tokens[1]))

    patch.setattr(results, "book", book)


def wrong_bound(patch: pytest.MonkeyPatch) -> None:
    """A batch expires at the bound by which it must have started."""
    real = endings.decide

    def decide(batch: Batch, partitions: Any, now: datetime, **more: bool) -> Any:
        if batch.status == Status.IN_PROGRESS and now >= batch.start_by:
            return endings.EXPIRED
        return real(batch, partitions, now, **more)

    patch.setattr(endings, "decide", decide)


def blind_hold(patch: pytest.MonkeyPatch) -> None:
    """A hold is placed without a look whether its batch has ended."""
    real = holding.hold_credits

    def hold(batch_id: str) -> str:
        with unit_of_work() as work:
            batch = moves.locked(work, batch_id)
            if batch.ceiling_nanos is not None and batch.card is not None:
                with suppress(InsufficientCredit):
                    ledger_holding.place(
                        work, batch_id=batch_id, account_id=batch.account_id,
                        amount_nanos=batch.ceiling_nanos, card=batch.card,
                    )  # fmt: skip
        return real(batch_id)

    patch.setattr(holding, "hold_credits", hold)


def late_cancel(patch: pytest.MonkeyPatch) -> None:
    """A batch whose files are being written can still be cancelled."""
    live = (Status.VALIDATING, Status.IN_PROGRESS, Status.FINALIZING)
    patch.setattr(cancelling, "_LIVE", live)


def ended_batch_runs(patch: pytest.MonkeyPatch) -> None:
    """Grants are given and claimed whatever the batch's status is."""
    patch.setattr(leases, "is_open", lambda batch: True)
    patch.setattr(leases, "drop_unwanted", lambda work: 0)


def limit_first(patch: pytest.MonkeyPatch) -> None:
    """A create meets the limit of open batches before it is known as a repetition."""
    real = intake.create

    def create(work: Work, *, account_id: str, **more: Any) -> Any:
        account = accounts.get(work, account_id)
        if account.open_batches >= account.open_batches_max:
            accounts.slot_take(work, account_id)
        return real(work, account_id=account_id, **more)

    patch.setattr(intake, "create", create)


def charge_apart(patch: pytest.MonkeyPatch) -> None:
    """The charge is made in a transaction before the one that ends the batch."""
    real = finishing._end

    def end(batch_id: str, ending: Any, collation: Any) -> str:
        with unit_of_work() as work:
            batch = moves.locked(work, batch_id)
            held = work.session.get(Hold, batch_id) is not None
            if batch.status not in TERMINAL and collation is not None and held:
                charge = charge_nanos(batch.card or {}, collation.input_tokens, collation.output_tokens)
                settling.settle(
                    work, batch_id=batch_id, charge_nanos=charge, lines=collation.completed,
                    input_tokens=collation.input_tokens, output_tokens=collation.output_tokens,
                )  # fmt: skip
        return real(batch_id, ending, collation)

    patch.setattr(finishing, "_end", end)


def delete_in_use(patch: pytest.MonkeyPatch) -> None:
    """A file that a live batch reads can be deleted."""

    def delete(work: Work, *, account_id: str, file_id: str, actor: str) -> File:
        file = keeping._found(work, account_id, file_id, lock=True)
        file.deleted_at = work.now
        account = accounts.get(work, account_id)
        account.files_count -= 1
        account.files_bytes -= file.bytes
        work.session.flush()
        return file

    patch.setattr(keeping, "delete", delete)


def engine_shared(patch: pytest.MonkeyPatch) -> None:
    """A grant that nobody has claimed takes no GPU."""
    real = admission.decide

    def decide(pools: Any, *more: Any, **named: Any) -> Any:
        return real([replace(pool, live=min(pool.live, pool.gpus - 1)) for pool in pools], *more, **named)

    patch.setattr(allocator, "decide", decide)


BUGS = (
    Bug("an end that does not look first", blind_end, "IntegrityError|cannot go from"),
    Bug("a slot given back twice", slot_twice, "open slots are not their open batches"),
    Bug("a missing fence", no_fence, "was given back while its job runs"),
    Bug("a charge for what is not in the file", every_row_charged, "was charged|beyond what was held"),
    Bug("the wrong bound", wrong_bound, "expired before its time"),
    Bug("a hold that does not look first", blind_hold, "ended with an open hold|came once more"),
    Bug("a cancel while the files are written", late_cancel, "cannot go from finalizing"),
    Bug("an ended batch that runs again", ended_batch_runs, "had ended|is live|came once more"),
    Bug("a limit before the look-up of a key", limit_first, "repeat of an answered create"),
    Bug("a charge outside the ending transaction", charge_apart, "charged before they end"),
    Bug("a file deleted in use", delete_in_use, "ObjectMissing"),
    Bug("a grant that takes no GPU", engine_shared, "more leases than GPUs"),
)
