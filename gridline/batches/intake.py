"""Accepting a batch: one transaction writes it, its event, its idempotency key, its open slot and its run request."""

from datetime import timedelta
from hashlib import sha256

from sqlalchemy import select, text

from gridline import ids
from gridline.batches import events, moves
from gridline.batches.reasons import ReasonCode
from gridline.batches.requests import CreateRequest
from gridline.batches.states import Status
from gridline.batches.tables import Batch, IdempotencyKey
from gridline.customers import accounts
from gridline.db.work import Work
from gridline.errors import Conflict, InvalidRequest, NotFound
from gridline.files.tables import File
from gridline.limits import START_BOUND_SECONDS, WINDOW_SECONDS

IDEMPOTENCY_HOURS = 24


def create(
    work: Work, *, account_id: str, actor: str, request: CreateRequest, idempotency_key: str | None = None
) -> Batch:
    """Accept a batch, or return the one that the same key made before.

    Raises:
        NotFound: the input file does not exist, is deleted or belongs to another account.
        Conflict: the key was used with another body.
        LimitExceeded: the account has no open slot; nothing was made.
    """
    if idempotency_key is not None:
        earlier = _earlier(work, account_id, idempotency_key, request)
        if earlier is not None:
            return earlier
    file = _input_file(work, account_id, request.input_file_id)
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
    work.session.flush()
    events.record(work, batch, "created", actor=actor, input_file_id=file.id)
    moves.request_run(work, batch, "start")
    if idempotency_key is not None:
        key = IdempotencyKey(
            account_id=account_id, key=idempotency_key, body_sha256=_digest(request), batch_id=batch.id,
            created_at=work.now,
        )  # fmt: skip
        work.session.merge(key)
    return batch


def _earlier(work: Work, account_id: str, key: str, request: CreateRequest) -> Batch | None:
    # Two requests with one key wait for each other, so the second finds what the first wrote.
    lock = {"name": f"idempotency:{account_id}:{key}"}
    work.session.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), lock)
    known = work.session.get(IdempotencyKey, (account_id, key))
    if known is None or known.created_at < work.now - timedelta(hours=IDEMPOTENCY_HOURS):
        return None
    if known.body_sha256 != _digest(request):
        raise Conflict(
            f"Idempotency-Key {key!r} was already used with another body less than {IDEMPOTENCY_HOURS} hours ago. "
            "Send a new key for a new batch.",
            code="idempotency_conflict",
            param="Idempotency-Key",
        )
    return work.session.get_one(Batch, known.batch_id)


def _digest(request: CreateRequest) -> str:
    return sha256(repr(request).encode()).hexdigest()


def _input_file(work: Work, account_id: str, file_id: str) -> File:
    # FOR SHARE: a delete of the file waits for this transaction and then sees the live batch.
    file = work.session.scalars(
        select(File)
        .where(File.id == file_id, File.account_id == account_id, File.deleted_at.is_(None))
        .with_for_update(read=True)
    ).one_or_none()
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
