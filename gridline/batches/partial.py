"""What a batch has done so far, a page at a time: which attempts count, whether it has ended, what is still there."""

from dataclasses import dataclass

from sqlalchemy import select

from gridline.batches import reading
from gridline.batches.states import TERMINAL, Status
from gridline.batches.tables import Attempt, Batch
from gridline.db.work import Work
from gridline.errors import InvariantBroken, NotFound
from gridline.lines.cursors import Cursor
from gridline.lines.following import Attempts, Follower, Page
from gridline.storage.objects import ObjectMissing, Store


@dataclass(frozen=True)
class Standing:
    """A batch and its attempts as they are committed."""

    batch: Batch
    attempts: Attempts

    @property
    def ended(self) -> bool:
        """Whether no result will be added."""
        return self.batch.status in TERMINAL

    @property
    def checked(self) -> bool:
        """Whether its file was read and found good: before that, and without that, no line has a result."""
        return self.batch.card is not None


def standing(work: Work, *, account_id: str, batch_id: str) -> Standing:
    """Where an account's batch stands.

    Raises:
        NotFound: missing and foreign alike.
    """
    batch = reading.get(work, account_id=account_id, batch_id=batch_id)
    attempts: dict[int, list[tuple[int, str]]] = {}
    for row in work.session.execute(
        select(Attempt.partition, Attempt.number, Attempt.lease_id)
        .where(Attempt.batch_id == batch_id)
        .order_by(Attempt.partition, Attempt.number)
    ):
        attempts.setdefault(row.partition, []).append((row.number, row.lease_id))
    return Standing(batch, attempts)


def page(store: Store, of: Standing, *, after: str | None, lines_max: int) -> tuple[Page, bool]:
    """The lines that follow a cursor (None: from the first), and whether more may follow them.

    No database is needed meanwhile: what an attempt that began since then does is the next page's.

    Raises:
        InvalidRequest: not a cursor of this batch.
        NotFound: the batch has ended and its partitions' objects are gone, ``results_gone``.
        InvariantBroken: they are gone and it has not ended.
    """
    cursor = Cursor.read(after, of.batch.id) if after else Cursor()
    follower = Follower(store, of.batch.id, of.attempts, ended=of.ended)
    if of.ended and of.checked and of.batch.status != Status.FAILED and not follower.collated:
        raise _gone(of.batch)
    try:
        found = follower.page(cursor, lines_max=lines_max, refused=of.checked)
    except ObjectMissing as error:
        if not of.ended:
            raise InvariantBroken(f"Batch {of.batch.id} runs and a result that it closed is gone.") from error
        raise _gone(of.batch) from error
    return found, found.more or not of.ended


def _gone(batch: Batch) -> NotFound:
    files = [
        f"{name} {file_id}"
        for name, file_id in (
            ("output_file_id", batch.output_file_id),
            ("error_file_id", batch.error_file_id),
        )
        if file_id is not None
    ]
    return NotFound(
        f"The results of batch {batch.id} can no longer be read in the order of completion: it has ended, and what "
        f"they were read from is deleted. Download its files instead: {' and '.join(files)}.",
        code="results_gone",
        param="batch_id",
    )
