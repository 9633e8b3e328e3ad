"""Task body ``validate``: reads the file once and stores what it found. Running it again changes nothing."""

from collections.abc import Mapping

from gridline import storage
from gridline.batches import events, moves, waits
from gridline.batches.reasons import ReasonCode
from gridline.batches.states import Status
from gridline.batches.tables import Batch, Partition
from gridline.catalog import cards, offering
from gridline.db.work import Work, unit_of_work
from gridline.files.tables import File
from gridline.lines.card import Card
from gridline.lines.checking import Checked, check_file
from gridline.settings import settings


def validate(batch_id: str) -> list[int]:
    """Check the input file and cut it into partitions; the numbers of the partitions to run.

    A file with a bad line ends the batch ``failed`` with every bad line named; a batch that ended
    meanwhile, or failed, has nothing to run.
    """
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        if batch.status != Status.VALIDATING or batch.validated_at is not None:
            return _partitions(work, batch)
        waits.set_reason(work, batch, ReasonCode.VALIDATING_FILE)
        object_key = work.session.get_one(File, batch.input_file_id).object_key
        rules = offering.rules(work, batch.account_id, batch.endpoint)
        # A base of adapters need not be offered by itself.
        known = {**cards.qualified_bases(work), **rules.cards}
    checked = check_file(
        storage.store(), rules, file_key=object_key, batch_id=batch_id, models_folder=settings().models_folder
    )
    with unit_of_work() as work:
        batch = moves.locked(work, batch_id)
        if batch.status == Status.VALIDATING and batch.validated_at is None:
            _store(work, batch, checked, known)
        return _partitions(work, batch)


def _partitions(work: Work, batch: Batch) -> list[int]:
    if batch.status not in (Status.VALIDATING, Status.IN_PROGRESS):
        return []
    work.session.flush()
    found = work.session.query(Partition.number).filter_by(batch_id=batch.id).order_by(Partition.number)
    return [number for (number,) in found]


def _store(work: Work, batch: Batch, checked: Checked, known: Mapping[str, Card]) -> None:
    batch.validated_at = work.now
    if checked.errors_total or checked.card is None:
        batch.errors = [error.as_dict() for error in checked.errors]
        batch.errors_total = checked.errors_total
        batch.error_code = "invalid_request"
        moves.move(work, batch, Status.FAILED, bad_lines=checked.errors_total)
        return
    card = known[checked.card.id]
    batch.model = card.id
    batch.card = {**card.copy(), "adapters": [one.as_dict() for one in checked.adapters]}
    batch.total = checked.total
    batch.failed = checked.refused
    batch.ceiling_nanos = checked.ceiling_nanos
    batch.input_tokens_estimate = checked.input_tokens
    for plan in checked.partitions:
        work.session.add(
            Partition(
                batch_id=batch.id, number=plan.number, account_id=batch.account_id, lines=plan.lines,
                tokens_estimate=plan.tokens, state="waiting", model_commit=card.commit,
            )
        )  # fmt: skip
    events.record(
        work,
        batch,
        "validated",
        lines=checked.total,
        refused=checked.refused,
        partitions=len(checked.partitions),
    )
