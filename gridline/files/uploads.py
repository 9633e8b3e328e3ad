"""Files that come in parts: opening an upload, its states, its end. The only file that changes an upload's status."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import delete, func, select

from gridline import ids, limits
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.errors import LimitExceeded, NotFound, Unavailable
from gridline.files import receiving
from gridline.files.errors import UploadNotPending
from gridline.files.requests import UploadRequest
from gridline.files.tables import File, Upload, UploadPart
from gridline.storage import layout
from gridline.storage.objects import Store

SWEEP_AFTER_SECONDS = 600
"""How long after an upload's expiry its objects are swept: whatever was on its way then has arrived."""

_LOG = logging.getLogger("gridline.files")


class UploadStatus(StrEnum):
    """OpenAI's four words. Pending is the only one that anything follows."""

    PENDING = "pending"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


def create(work: Work, *, account_id: str, request: UploadRequest) -> Upload:
    """Open an upload.

    Raises:
        LimitExceeded: the account has as many pending ones as it may, or no room for one more file.
    """
    # Of two that would both be the last one, the second waits here and then counts the first. NO KEY: rows that
    # only refer to the account, as parts do, need not wait.
    work.session.execute(select(Account.id).where(Account.id == account_id).with_for_update(key_share=True))
    receiving.check_room(work, account_id)
    pending = work.session.scalar(
        select(func.count()).where(
            Upload.account_id == account_id,
            Upload.status == UploadStatus.PENDING,
            Upload.expires_at > work.now,
        )
    )
    if (pending or 0) >= limits.UPLOADS_PENDING_MAX:
        raise LimitExceeded(
            f"Your account has {pending} of {limits.UPLOADS_PENDING_MAX} pending uploads. Complete or cancel one, "
            f"or wait: each expires {limits.UPLOAD_OPEN_SECONDS} seconds after it was created.",
            limit={
                "name": "uploads_pending",
                "limit": limits.UPLOADS_PENDING_MAX,
                "current": pending,
                "unit": "uploads",
            },
        )
    upload = Upload(
        id=ids.new("upload"), account_id=account_id, filename=request.filename, purpose=request.purpose,
        bytes=request.bytes, mime_type=request.mime_type, expires_after_seconds=request.expires_after_seconds,
        status=UploadStatus.PENDING, created_at=work.now,
        expires_at=work.now + timedelta(seconds=limits.UPLOAD_OPEN_SECONDS),
        part_ids=None, file_id=None, swept_at=None,
    )  # fmt: skip
    work.session.add(upload)
    work.session.flush()
    return upload


def get(work: Work, *, account_id: str, upload_id: str, lock: bool = False) -> Upload:
    """An account's upload; ``lock``: held until the transaction ends, the first lock of all that changes it.

    Raises:
        NotFound: missing and foreign alike.
    """
    statement = select(Upload).where(Upload.id == upload_id, Upload.account_id == account_id)
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    # Text that is no id never reaches the database: it could hold what a database text cannot.
    upload = work.session.scalars(statement).one_or_none() if ids.is_id("upload", upload_id) else None
    if upload is None:
        raise NotFound(f"No such Upload object: {upload_id}", param="upload_id")
    return upload


def status_at(upload: Upload, now: datetime) -> UploadStatus:
    """The status that is shown and acted on: an expired upload is one also before it is swept."""
    status = UploadStatus(upload.status)
    if status is UploadStatus.PENDING and upload.expires_at <= now:
        return UploadStatus.EXPIRED
    return status


def require_pending(upload: Upload, now: datetime) -> None:
    """Go on only with an upload that can still become a file.

    Raises:
        UploadNotPending: completed, cancelled or expired.
    """
    status = status_at(upload, now)
    if status is not UploadStatus.PENDING:
        raise UploadNotPending(
            f"Upload {upload.id} has status '{status}', and this call needs status 'pending'. Create a new upload.",
            param="upload_id",
        )


def cancel(work: Work, *, account_id: str, upload_id: str) -> Upload:
    """End an upload without a file; a cancelled one stays as it is. The caller drops its parts after the commit.

    Raises:
        NotFound: no such upload in this account.
        UploadNotPending: completed or expired.
    """
    upload = get(work, account_id=account_id, upload_id=upload_id, lock=True)
    if upload.status != UploadStatus.CANCELLED:
        require_pending(upload, work.now)
        end(work, upload, UploadStatus.CANCELLED)
    return upload


def end(work: Work, upload: Upload, status: UploadStatus, *, file: File | None = None) -> None:
    """Give a pending upload, locked by the caller, its last status, and the file that it became."""
    upload.status = status
    upload.file_id = None if file is None else file.id
    work.session.flush()


def drop_parts(store: Store, upload: Upload) -> None:
    """Delete what an upload that has ended left in the store. What cannot be deleted now, the keeper sweeps."""
    try:
        store.delete_prefix(layout.upload_prefix(upload.account_id, upload.id))
    except Unavailable:
        _LOG.warning("An ended upload's parts stay until they are swept.", extra={"upload_id": upload.id})


def due(work: Work, *, most: int) -> Sequence[Upload]:
    """Uploads whose time is over and whose objects nobody has swept yet, the longest over first."""
    over = work.now - timedelta(seconds=SWEEP_AFTER_SECONDS)
    return work.session.scalars(
        select(Upload)
        .where(Upload.swept_at.is_(None), Upload.expires_at <= over)
        .order_by(Upload.expires_at)
        .limit(most)
    ).all()


def swept(work: Work, upload: Upload) -> None:
    """Note that no object of an upload that was due is left; its parts' rows go too. Twice is once."""
    one = get(work, account_id=upload.account_id, upload_id=upload.id, lock=True)
    if one.status == UploadStatus.PENDING:
        end(work, one, UploadStatus.EXPIRED)
    work.session.execute(
        delete(UploadPart).where(UploadPart.upload_id == one.id).execution_options(synchronize_session=False)
    )
    one.swept_at = one.swept_at or work.now
    work.session.flush()
