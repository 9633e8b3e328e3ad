"""Receiving an upload: streamed to the store under a server-made key, hashed and checked on the way, then a row.

The account's quota is taken in the transaction that writes the row, so nothing has to be given back when an
upload fails, and no crash can leave space taken. An object without a row is swept by the keeper.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from sqlalchemy import select, update

from gridline import ids, limits
from gridline.customers.tables import Account
from gridline.db.work import Work, unit_of_work
from gridline.errors import InvariantBroken, LimitExceeded, Refused
from gridline.files import retention
from gridline.files.checking import InputCheck, check_filename
from gridline.files.tables import File
from gridline.profiles.profile import Profile
from gridline.storage import layout
from gridline.storage.objects import ObjectWriter, Store

PURPOSE_INPUT = "batch"


class Incoming:
    """An input on its way into the store. Nothing of it can be seen until ``keep``."""

    def __init__(self, account_id: str, writer: ObjectWriter, profile: Profile, file_id: str) -> None:
        self.file_id = file_id
        self.object_key = layout.file_key(account_id, file_id)
        self.account_id = account_id
        self.bytes = 0
        self.filename: str | None = None
        self._hash = sha256()
        self._check = InputCheck(bytes_max=profile.file_bytes_max, lines_max=profile.file_lines_max)
        self._writer = writer

    def name(self, filename: str) -> None:
        """Say what the customer calls the file, before its first byte.

        Raises:
            FileRefused: a name that no input may have.
        """
        self.filename = check_filename(filename)

    def write(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            FileRefused, FileTooLarge: see ``gridline.files.checking``.
        """
        self._check.feed(data)
        self._hash.update(data)
        self._writer.write(data)
        self.bytes += len(data)

    def finish(self) -> None:
        """Say that no more bytes come.

        Raises:
            FileRefused: what only the end can tell.
        """
        self._check.finish()

    @property
    def sha256(self) -> str:
        """Hex digest of what was taken."""
        return self._hash.hexdigest()


@contextmanager
def receive(store: Store, account_id: str, profile: Profile) -> Iterator[Incoming]:
    """An object to stream an upload into; whole in the store at the end of the block, gone on any error."""
    file_id = ids.new("file")
    with store.writer(layout.file_key(account_id, file_id)) as writer:
        incoming = Incoming(account_id, writer, profile, file_id)
        yield incoming
        if incoming.filename is None:
            raise InvariantBroken("An upload ended well without a file part.")
        incoming.finish()


def check_room(work: Work, account_id: str) -> None:
    """Refuse early, before any byte is read, when the account has no room for one more file.

    Raises:
        LimitExceeded: 500 files or 20 GB are stored.
    """
    count, stored = work.session.execute(
        select(Account.files_count, Account.files_bytes).where(Account.id == account_id)
    ).one()
    if count >= limits.ACCOUNT_FILES_MAX or stored >= limits.ACCOUNT_STORED_BYTES_MAX:
        raise _no_room(count, stored)


def keep(store: Store, incoming: Incoming, *, expires_after_seconds: int | None) -> File:
    """Write the row of a received input and take its room, both or neither, in a unit of work of its own.

    Raises:
        LimitExceeded: the account has no room for it; the object is deleted.
    """
    try:
        with unit_of_work() as work:
            return add_row(work, incoming, expires_after_seconds=expires_after_seconds)
    except Refused:
        # Only then is it sure that no row names the object: a lost commit's answer may still have been a yes.
        store.delete(incoming.object_key)
        raise


def add_row(work: Work, incoming: Incoming, *, expires_after_seconds: int | None) -> File:
    """Write the row of a received input and take its room, in the caller's unit of work.

    Raises:
        LimitExceeded: the account has no room for it; the caller deletes the object.
    """
    _take_room(work, incoming.account_id, incoming.bytes)
    file = File(
        id=incoming.file_id,
        account_id=incoming.account_id,
        purpose=PURPOSE_INPUT,
        filename=incoming.filename,
        bytes=incoming.bytes,
        sha256=incoming.sha256,
        object_key=incoming.object_key,
        created_at=work.now,
        expires_at=retention.input_expires_at(
            work.now, expires_after_seconds, retention.policy(work, incoming.account_id)
        ),
        deleted_at=None,
        batch_id=None,
    )
    work.session.add(file)
    work.session.flush()
    return file


def _take_room(work: Work, account_id: str, size: int) -> None:
    """Count one more file of ``size`` bytes if the account has room for it: one statement, so no race is lost."""
    taken = work.session.execute(
        update(Account)
        .where(
            Account.id == account_id,
            Account.files_count < limits.ACCOUNT_FILES_MAX,
            Account.files_bytes + size <= limits.ACCOUNT_STORED_BYTES_MAX,
        )
        .values(files_count=Account.files_count + 1, files_bytes=Account.files_bytes + size)
        .returning(Account.files_count)
        .execution_options(synchronize_session=False)
    ).one_or_none()
    if taken is None:
        count, stored = work.session.execute(
            select(Account.files_count, Account.files_bytes).where(Account.id == account_id)
        ).one()
        raise _no_room(count, stored)


def _no_room(count: int, stored: int) -> LimitExceeded:
    full = count >= limits.ACCOUNT_FILES_MAX
    limit, current, unit = (
        (limits.ACCOUNT_FILES_MAX, count, "files")
        if full
        else (limits.ACCOUNT_STORED_BYTES_MAX, stored, "bytes")
    )
    return LimitExceeded(
        f"Your account stores {current} of {limit} {unit}. Delete files you no longer need, then upload again. "
        "To ask for more, write to the operator.",
        limit={"name": f"stored_{unit}", "limit": limit, "current": current, "unit": unit},
    )
