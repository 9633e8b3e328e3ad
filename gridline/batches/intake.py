"""Accepting a batch: one transaction writes it, its event, what finds it again, its open slot and its run request."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import select

from gridline import ids
from gridline.batches import events, moves, repeats
from gridline.batches.reasons import ReasonCode
from gridline.batches.repeats import Sent
from gridline.batches.requests import CreateRequest
from gridline.batches.states import Status
from gridline.batches.tables import Batch
from gridline.customers import accounts, spending
from gridline.db.work import Work
from gridline.errors import InvalidRequest, NotFound
from gridline.files import retention
from gridline.files.tables import File
from gridline.limits import START_BOUND_SECONDS, WINDOW_SECONDS


@dataclass(frozen=True)
class Created:
    """The batch of a create; ``replayed`` when an earlier one made it and this one changed nothing."""

    batch: Batch
    replayed: bool


def create(work: Work, *, account_id: str, actor: str, request: CreateRequest, sent: Sent) -> Created:
    """Accept a batch, or return the one that this very create made before, whatever the limits say by now.

    Raises:
        NotFound: the input file does not exist, is deleted or belongs to another account.
        Conflict: the key was used with another body.
        InvalidRequest: the input would expire before the window ends.
        LimitExceeded: the account has no open slot, or has used its daily limit; nothing was made.
    """
    earlier = repeats.find(work, account_id=account_id, request=request, sent=sent)
    if earlier is not None:
        return Created(earlier, replayed=True)
    file = input_file(work, account_id, request.input_file_id, keep=True)
    spending.check_create(work, account_id)
    accounts.slot_take(work, account_id)
    batch = Batch(
        id=ids.new("batch"), account_id=account_id, created_by=actor, endpoint=request.endpoint,
        input_file_id=file.id, completion_window=request.completion_window, status=Status.VALIDATING,
        batch_metadata=request.metadata, output_expires_after_seconds=request.output_expires_after_seconds,
        created_at=work.now,
        start_by=work.now + timedelta(seconds=START_BOUND_SECONDS[request.completion_window]),
        expires_at=work.now + timedelta(seconds=WINDOW_SECONDS[request.completion_window]),
        reason_code=ReasonCode.STARTING, reason_since=work.now,
    )  # fmt: skip
    work.session.add(batch)
    retention.keep_for_batch(file, batch.expires_at, retention.policy(work, account_id))
    work.session.flush()
    events.record(work, batch, "created", actor=actor, input_file_id=file.id)
    moves.request_run(work, batch, "start")
    repeats.remember(work, batch, request=request, sent=sent)
    return Created(batch, replayed=False)


def input_file(work: Work, account_id: str, file_id: str, *, keep: bool = False) -> File:
    """The account's file that a batch may read; ``keep``: a delete of it waits for this transaction.

    Raises:
        NotFound: missing, deleted and foreign alike.
        InvalidRequest: it was not uploaded for batches.
    """
    statement = select(File).where(
        File.id == file_id, File.account_id == account_id, File.deleted_at.is_(None)
    )
    if keep:
        # FOR NO KEY UPDATE: a delete then sees the live batch, and of two creates the second waits, since both keep the
        # file for longer.
        statement = statement.with_for_update(key_share=True)
    file = work.session.scalars(statement).one_or_none()
    if file is None:
        raise NotFound(
            f"No such File object: {file_id}. Upload it again and use the new id.", param="input_file_id"
        )
    if file.purpose != "batch":
        raise InvalidRequest(
            f"File {file_id} has purpose {file.purpose!r}; a batch reads files with purpose 'batch'. "
            "Upload the requests with purpose=batch.",
            code="invalid_value",
            param="input_file_id",
        )
    return file
