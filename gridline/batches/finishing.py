"""``finish(batch)``: the one way a batch ends. Files first, then one transaction for charge, files and status.

Called through the DAG's ``collate`` and ``settle``, by the keeper for batches without a live run, and safe to call
at any time, twice, at once: the manifests and the collation are create-once objects, and the last transaction
begins by looking whether the batch has ended.
"""

from sqlalchemy import select

from gridline import storage
from gridline.batches import endings, moves, results
from gridline.batches.endings import Ending
from gridline.batches.states import TERMINAL, Status
from gridline.batches.tables import Attempt, Batch, Partition
from gridline.db.work import Work, unit_of_work
from gridline.ledger import reading as books
from gridline.ledger import settling
from gridline.lines import sealing
from gridline.lines.collating import Collation
from gridline.storage import layout

Attempts = dict[int, list[tuple[int, str]]]
"""Per partition its attempts' numbers and lease ids, lowest first."""


def collate(batch_id: str) -> str:
    """Task body: write the result files of a batch whose partitions are over. The status it left is returned."""
    return finish(batch_id, run_over=False, settle=False)


def settle(batch_id: str) -> str:
    """Task body: end a batch whose partitions are over, or whose other end is due. The status it left is returned.

    That its run is over is not for the run's last task to say: a copy that stood still may wake when the run goes on
    again. Only the keeper, which asks Airflow, ends a batch whose run left something undone.
    """
    return finish(batch_id, run_over=False)


def finish(batch_id: str, *, run_over: bool, settle: bool = True) -> str:
    """End the batch if its end is due; the status it then has.

    Args:
        batch_id: the batch.
        run_over: its run has ended and Airflow said so, hence a partition that is not over never will be.
        settle: False stops after the files, before the transaction that ends the batch.
    """
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        partitions = _partitions(work, batch_id)
        held = books.hold_of(work, batch_id) is not None
        ending = endings.decide(batch, partitions, work.now, run_over=run_over, held=held)
        # A late copy of ``collate`` seals nothing under a job that was asked to stop: what that closes still counts.
        if ending is None or (not settle and any(one.state == "running" for one in partitions)):
            return batch.status
        attempts = _attempts(work, batch_id, partitions)
        known_to_run = batch.any_line_ran
    if ending.unless_a_line_ran and _any_segment(batch_id, attempts):
        _note_that_it_ran(batch_id)
        return finish(batch_id, run_over=run_over, settle=settle)
    if ending.status is Status.FAILED:
        return _fail(batch_id, ending) if settle else batch.status
    ran = _seal(batch_id, attempts)
    # Without partitions only a file whose every line was refused is done: one that was never read has nothing to deliver.
    # And a job may have closed its first segment after the seal: none of it counts, but the batch has run.
    if ending is endings.COMPLETED and not (ran or known_to_run) and (attempts or batch.validated_at is None):
        return _fail(batch_id, endings.GIVEN_UP) if settle else batch.status
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        if not _announce(work, batch, ending, ran=ran):
            return batch.status
    collation = results.write(batch, sorted(attempts), ending)
    return _end(batch_id, ending, collation) if settle else batch.status


def _partitions(work: Work, batch_id: str) -> list[Partition]:
    return list(
        work.session.scalars(
            select(Partition).where(Partition.batch_id == batch_id).order_by(Partition.number)
        )
    )


def _attempts(work: Work, batch_id: str, partitions: list[Partition]) -> Attempts:
    attempts: Attempts = {one.number: [] for one in partitions}
    for row in work.session.scalars(
        select(Attempt).where(Attempt.batch_id == batch_id).order_by(Attempt.partition, Attempt.number)
    ):
        attempts[row.partition].append((row.number, row.lease_id))
    return attempts


def _any_segment(batch_id: str, attempts: Attempts) -> bool:
    store = storage.store()
    return any(
        layout.is_segment(key)
        for number, tries in attempts.items()
        if tries
        for key in store.list(layout.attempts_prefix(batch_id, number))
    )


def _note_that_it_ran(batch_id: str) -> None:
    """A line ran although no progress said so (its job died in between): the start bound no longer counts."""
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        if batch.status not in TERMINAL:
            batch.any_line_ran = True


def _seal(batch_id: str, attempts: Attempts) -> bool:
    """Seal every partition: what counts is fixed from here on, whatever a late job still writes. Any line ran?"""
    manifests = [sealing.seal(storage.store(), batch_id, number, tries) for number, tries in attempts.items()]
    return any(segment.lines for manifest in manifests for segment in manifest.segments)


def _announce(work: Work, batch: Batch, ending: Ending, *, ran: bool) -> bool:
    """Show ``finalizing`` while a completed batch's files are written. False if the batch has ended meanwhile."""
    if batch.status in TERMINAL:
        return False
    batch.any_line_ran = batch.any_line_ran or ran
    if ending.status is Status.COMPLETED:
        if batch.status == Status.VALIDATING:
            moves.move(work, batch, Status.IN_PROGRESS)
        if batch.status == Status.IN_PROGRESS:
            moves.move(work, batch, Status.FINALIZING)
    # Between the decision and here a cancel may have won: then its own finish is due, with its own codes.
    return not (batch.status == Status.CANCELLING and ending.status is not Status.CANCELLED)


def _fail(batch_id: str, ending: Ending) -> str:
    """``failed``: nothing ran, no files, nothing charged, the whole hold returns."""
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        # A line may have run since this was decided: then the next call decides again.
        if batch.any_line_ran or batch.status not in (Status.VALIDATING, Status.IN_PROGRESS):
            return batch.status
        settling.settle(work, batch_id=batch_id, charge_nanos=0, lines=0, input_tokens=0, output_tokens=0)
        batch.completed = batch.failed = 0
        batch.errors = [{"code": ending.code, "message": ending.message, "param": None, "line": None}]
        batch.errors_total = 1
        batch.error_code = ending.code
        moves.move(work, batch, Status.FAILED, error_code=ending.code)
        return batch.status


def _end(batch_id: str, ending: Ending, collation: Collation | None) -> str:
    """The one transaction that ends a batch: file rows, charge, release, counts, status, slot."""
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        if batch.status in TERMINAL:
            return batch.status
        if collation is not None:
            results.book(work, batch, collation)
        else:
            settling.settle(work, batch_id=batch_id, charge_nanos=0, lines=0, input_tokens=0, output_tokens=0)
        moves.move(
            work,
            batch,
            ending.status,
            completed=batch.completed,
            failed=batch.failed,
            cancelled=batch.cancelled,
        )
        return batch.status
