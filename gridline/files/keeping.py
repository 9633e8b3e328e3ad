"""Files that are kept: one, a page, deletion and expiry. Every read is of one account."""

from collections.abc import Sequence

from sqlalchemy import DateTime as Moment
from sqlalchemy import Text, column, func, select, table, tuple_, update

from gridline import ids
from gridline.customers import audit
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.errors import NotFound
from gridline.files.errors import FileInUse
from gridline.files.tables import File

# Only the columns this room asks about: batches import files, never the reverse.
_BATCHES = table(
    "batches", column("id", Text), column("input_file_id", Text), column("ended_at", Moment(timezone=True))
)


def get(work: Work, *, account_id: str, file_id: str) -> File:
    """An account's file.

    Raises:
        NotFound: missing, deleted and foreign alike.
    """
    return _found(work, account_id, file_id)


def page(
    work: Work, *, account_id: str, purpose: str | None, after: str | None, limit: int, oldest_first: bool
) -> tuple[Sequence[File], bool]:
    """Up to ``limit`` files after the given id, and whether there are more.

    Raises:
        NotFound: the cursor never was a file of this account (a deleted one still marks its place).
    """
    rows = select(File).where(File.account_id == account_id, File.deleted_at.is_(None))
    if purpose is not None:
        rows = rows.where(File.purpose == purpose)
    place = tuple_(File.created_at, File.sequence)
    if after is not None:
        cursor = _found(work, account_id, after, param="after", deleted_too=True)
        mark = (cursor.created_at, cursor.sequence)
        rows = rows.where(place > mark if oldest_first else place < mark)
    order = (
        (File.created_at, File.sequence) if oldest_first else (File.created_at.desc(), File.sequence.desc())
    )
    found = work.session.scalars(rows.order_by(*order).limit(limit + 1)).all()
    return found[:limit], len(found) > limit


def delete(work: Work, *, account_id: str, file_id: str, actor: str) -> File:
    """Delete a file's row and give its room back. The caller deletes the object once this is committed.

    Raises:
        NotFound: missing, deleted and foreign alike.
        FileInUse: a batch that has not ended reads it.
    """
    # FOR UPDATE: a create that reads the same file goes before or after, so it either blocks this or finds nothing.
    file = _found(work, account_id, file_id, lock=True)
    batch_id = _reader(work, file)
    if batch_id is not None:
        raise FileInUse(
            f"File {file.id} is the input of batch {batch_id}, which has not ended. Delete it after the batch ends, "
            "or cancel the batch first.",
            param="file_id",
        )
    _delete(work, file, actor=actor, action="file.deleted")
    return file


def expired(work: Work, *, most: int) -> Sequence[str]:
    """Ids of files whose time is over and that no live batch reads, the longest over first."""
    read = select(_BATCHES.c.id).where(_BATCHES.c.input_file_id == File.id, _BATCHES.c.ended_at.is_(None))
    return work.session.scalars(
        select(File.id)
        .where(File.deleted_at.is_(None), File.expires_at <= work.now, ~read.exists())
        .order_by(File.expires_at)
        .limit(most)
    ).all()


def expire(work: Work, file_id: str) -> File | None:
    """Delete an expired file's row and give its room back; the caller deletes the object once this is committed.

    None where there is nothing to do any more: deleted by then, kept for longer, or read by a batch.
    """
    file = work.session.scalars(
        select(File)
        .where(File.id == file_id, File.deleted_at.is_(None), File.expires_at <= work.now)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one_or_none()
    if file is None or _reader(work, file) is not None:
        return None
    _delete(work, file, actor="keeper", action="file.expired")
    return file


def _reader(work: Work, file: File) -> str | None:
    """A batch that has not ended and reads the file."""
    found: str | None = work.session.execute(
        select(func.min(_BATCHES.c.id)).where(
            _BATCHES.c.input_file_id == file.id, _BATCHES.c.ended_at.is_(None)
        )
    ).scalar_one()
    return found


def _delete(work: Work, file: File, *, actor: str, action: str) -> None:
    file.deleted_at = work.now
    work.session.execute(
        update(Account)
        .where(Account.id == file.account_id)
        .values(files_count=Account.files_count - 1, files_bytes=Account.files_bytes - file.bytes)
        .execution_options(synchronize_session=False)
    )
    details = {"file_id": file.id, "bytes": file.bytes}
    audit.record(work, account_id=file.account_id, actor=actor, action=action, details=details)
    work.session.flush()


def _found(
    work: Work,
    account_id: str,
    file_id: str,
    *,
    param: str = "file_id",
    deleted_too: bool = False,
    lock: bool = False,
) -> File:
    statement = select(File).where(File.id == file_id, File.account_id == account_id)
    if not deleted_too:
        statement = statement.where(File.deleted_at.is_(None))
    if lock:
        statement = statement.with_for_update()
    # Text that is no id never reaches the database: it could hold what a database text cannot.
    file = work.session.scalars(statement).one_or_none() if ids.is_id("file", file_id) else None
    if file is None:
        raise NotFound(f"No such File object: {file_id}", param=param)
    return file
