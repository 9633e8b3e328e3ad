"""Parts of an upload: streamed to the store one by one, in any order and side by side, each with a row once it is whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import func, select

from gridline import ids, limits
from gridline.db.work import Work, unit_of_work
from gridline.errors import InvalidRequest, Refused, TooLarge
from gridline.files import uploads
from gridline.files.tables import Upload, UploadPart
from gridline.storage import layout
from gridline.storage.objects import ObjectWriter, Store


@dataclass(frozen=True)
class Room:
    """An upload and the bytes that its parts have so far."""

    upload: Upload
    bytes: int

    def check(self, more: int) -> None:
        """Whether a part of ``more`` bytes may be added.

        Raises:
            TooLarge: the part is over its cap, or all parts together are over theirs.
        """
        if more > limits.UPLOAD_PART_BYTES_MAX:
            raise TooLarge(
                f"The part is larger than {limits.UPLOAD_PART_BYTES_MAX} bytes, the most that one part may have. "
                "Send the file in smaller parts.",
                code="part_too_large",
                param="data",
                limit={"name": "part_bytes", "limit": limits.UPLOAD_PART_BYTES_MAX, "unit": "bytes"},
            )
        most = self.upload.bytes * limits.UPLOAD_SENT_TIMES_MAX
        if self.bytes + more > most:
            raise TooLarge(
                f"Upload {self.upload.id} was created with {self.upload.bytes} bytes, so its parts may have {most} "
                f"bytes together, repeated ones included. {self.bytes} bytes are stored, and this part goes beyond. "
                "Complete the upload, or cancel it and create one with the right number of bytes.",
                code="upload_too_large",
                param="data",
                limit={"name": "upload_bytes", "limit": most, "current": self.bytes, "unit": "bytes"},
            )


class IncomingPart:
    """A part on its way into the store. Nothing can be made of it until ``keep``."""

    def __init__(self, room: Room, writer: ObjectWriter, part_id: str) -> None:
        self.part_id = part_id
        self.upload_id = room.upload.id
        self.account_id = room.upload.account_id
        self.object_key = layout.upload_part_key(self.account_id, self.upload_id, part_id)
        self.bytes = 0
        self._room = room
        self._writer = writer

    def write(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            TooLarge: see ``Room.check``.
        """
        self._room.check(self.bytes + len(data))
        self._writer.write(data)
        self.bytes += len(data)


def room(work: Work, *, account_id: str, upload_id: str, lock: bool = False) -> Room:
    """The room of an upload that can take one more part; to be asked before a byte is read, and again to keep it.

    Raises:
        NotFound: no such upload in this account.
        UploadNotPending: it has ended or expired.
        TooLarge: it has as many parts as it may.
    """
    upload = uploads.get(work, account_id=account_id, upload_id=upload_id, lock=lock)
    uploads.require_pending(upload, work.now)
    count, stored = work.session.execute(
        select(func.count(), func.coalesce(func.sum(UploadPart.bytes), 0)).where(
            UploadPart.upload_id == upload_id
        )
    ).one()
    if count >= limits.UPLOAD_PARTS_MAX:
        raise TooLarge(
            f"Upload {upload_id} has {count} of {limits.UPLOAD_PARTS_MAX} parts. Complete it, or cancel it and send "
            "the file in larger parts.",
            code="too_many_parts",
            param="data",
            limit={
                "name": "upload_parts",
                "limit": limits.UPLOAD_PARTS_MAX,
                "current": count,
                "unit": "parts",
            },
        )
    return Room(upload, int(stored))


@contextmanager
def receive(store: Store, room: Room) -> Iterator[IncomingPart]:
    """An object to stream a part into; whole in the store at the end of the block, gone on any error.

    Raises:
        InvalidRequest: the part is empty.
    """
    part_id = ids.new("upload_part")
    key = layout.upload_part_key(room.upload.account_id, room.upload.id, part_id)
    with store.writer(key) as writer:
        incoming = IncomingPart(room, writer, part_id)
        yield incoming
        if incoming.bytes == 0:
            raise InvalidRequest(
                "The part is empty. Send at least 1 byte in 'data'.", code="empty_part", param="data"
            )


def keep(store: Store, incoming: IncomingPart) -> UploadPart:
    """Write the row of a received part, in a unit of work of its own.

    Raises:
        UploadNotPending, TooLarge: what others sent meanwhile ended the upload or used its room; the object is deleted.
    """
    try:
        with unit_of_work() as work:
            left = room(work, account_id=incoming.account_id, upload_id=incoming.upload_id, lock=True)
            left.check(incoming.bytes)
            part = UploadPart(
                id=incoming.part_id,
                upload_id=incoming.upload_id,
                account_id=incoming.account_id,
                bytes=incoming.bytes,
                object_key=incoming.object_key,
                created_at=work.now,
            )
            work.session.add(part)
            work.session.flush()
            return part
    except Refused:
        # Only then is it sure that no row names the object: a lost commit's answer may still have been a yes.
        store.delete(incoming.object_key)
        raise
