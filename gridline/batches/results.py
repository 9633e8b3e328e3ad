"""A finished batch's files and figures: writing the objects, then booking them in the ending transaction."""

from sqlalchemy import update
from sqlalchemy.dialects.postgresql import insert

from gridline import ids, storage
from gridline.batches.endings import Ending
from gridline.batches.tables import Batch
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.errors import InvariantBroken
from gridline.files import retention
from gridline.files.tables import File
from gridline.ledger import holding, settling
from gridline.lines import collating
from gridline.lines.collating import Collation, FilePart
from gridline.storage import layout
from gridline.usage import charging, facts

_KINDS = ("output", "error")


def write(batch: Batch, partitions: list[int], ending: Ending) -> Collation | None:
    """Write the output and error objects in input order; None where validation had not ended (no lines are known).

    Lines without a result get the ending's code and message. A second call finds what the first wrote.
    """
    if batch.validated_at is None:
        return None
    return collating.collate(
        storage.store(),
        batch_id=batch.id,
        account_id=batch.account_id,
        partitions=partitions,
        output_key=layout.file_key(batch.account_id, _file_id(batch, "output")),
        error_key=layout.file_key(batch.account_id, _file_id(batch, "error")),
        missing=(ending.code, ending.message),
    )


def book(work: Work, batch: Batch, collation: Collation) -> None:
    """Charge for what is delivered, return the rest, and make the files and the figures visible."""
    if batch.card is None:
        raise InvariantBroken(f"Batch {batch.id} has results but no copy of its rates.")
    # A batch that ends before its hold (every line refused, or cancelled early) costs 0, and its receipt says so.
    holding.place(work, batch_id=batch.id, account_id=batch.account_id, amount_nanos=0, card=batch.card)
    settling.settle(
        work,
        batch_id=batch.id,
        charge_nanos=charging.charge_nanos(batch.card, collation.input_tokens, collation.output_tokens),
        lines=collation.completed,
        input_tokens=collation.input_tokens,
        output_tokens=collation.output_tokens,
    )
    facts.record(
        work,
        batch_id=batch.id,
        account_id=batch.account_id,
        usage_by_model=collation.usage_by_model,
        card=batch.card,
    )
    batch.total = collation.total
    batch.completed, batch.failed, batch.cancelled = (
        collation.completed,
        collation.failed,
        collation.cancelled,
    )
    batch.input_tokens, batch.output_tokens = collation.input_tokens, collation.output_tokens
    batch.output_file_id = _add_file(work, batch, "output", collation.output)
    batch.error_file_id = _add_file(work, batch, "error", collation.error)


def file_ids(batch_id: str) -> tuple[str, ...]:
    """Ids of the files that a batch has or will have, if it has them at all: output, then error."""
    return tuple(ids.derived("file", batch_id, kind) for kind in _KINDS)


def _file_id(batch: Batch, kind: str) -> str:
    return file_ids(batch.id)[_KINDS.index(kind)]


def _add_file(work: Work, batch: Batch, kind: str, part: FilePart | None) -> str | None:
    if part is None:
        return None
    file_id = _file_id(batch, kind)
    source = work.session.get(File, batch.input_file_id)
    expires_at = retention.output_expires_at(
        work.now,
        batch.output_expires_after_seconds,
        policy=retention.policy(work, batch.account_id),
        input_expires_at=None if source is None else source.expires_at,
    )
    work.session.execute(
        insert(File).values(
            id=file_id, account_id=batch.account_id, purpose="batch_output", filename=f"{batch.id}_{kind}.jsonl",
            bytes=part.bytes, sha256=part.sha256, object_key=layout.file_key(batch.account_id, file_id),
            created_at=work.now, expires_at=expires_at, batch_id=batch.id,
        )
    )  # fmt: skip
    # Results are never refused for lack of room: they count, so the next upload is.
    work.session.execute(
        update(Account)
        .where(Account.id == batch.account_id)
        .values(files_count=Account.files_count + 1, files_bytes=Account.files_bytes + part.bytes)
    )
    return file_id
