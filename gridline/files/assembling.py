"""Completing an upload: its parts, in the asked order, pass the checks of any other file and become one.

Assembling takes seconds, so no lock is held meanwhile: each try writes a file of its own, and in the transaction that
ends the upload one of them wins. The others' files are deleted before anybody could see them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import md5

from sqlalchemy import select

from gridline import ids
from gridline.db.work import Work, unit_of_work
from gridline.errors import InvalidRequest, InvariantBroken, Refused
from gridline.fields import short
from gridline.files import receiving, uploads
from gridline.files.errors import UploadNotPending
from gridline.files.receiving import Incoming
from gridline.files.requests import CompleteRequest
from gridline.files.tables import File, Upload, UploadPart
from gridline.files.uploads import UploadStatus
from gridline.profiles.profile import Profile
from gridline.storage.objects import ObjectMissing, Store


@dataclass(frozen=True)
class Completed:
    """An upload that became a file; the file is None once it is deleted. ``fresh``: this call made it."""

    upload: Upload
    file: File | None
    fresh: bool = False


def complete(
    store: Store, profile: Profile, wanted: CompleteRequest, *, account_id: str, upload_id: str
) -> Completed:
    """Make the file, in units of work of its own; the same call again returns the same file.

    Whatever is refused but the state leaves the upload pending: other parts may be sent, or it may be cancelled.

    Raises:
        NotFound: no such upload in this account.
        UploadNotPending: cancelled, expired, or completed with other parts.
        InvalidRequest: parts that are not the upload's, that have not its size, or not the MD5.
        FileRefused, FileTooLarge, LimitExceeded: as for every other file.
    """
    with unit_of_work() as work:
        upload = uploads.get(work, account_id=account_id, upload_id=upload_id)
        done = _before(work, upload, wanted)
        if done is not None:
            return done
        parts = _ordered(work, upload, wanted.part_ids)
        receiving.check_room(work, account_id)
    try:
        incoming = _assemble(store, profile, upload, parts, digest=wanted.md5)
    except ObjectMissing as missing:
        # The objects go only after the upload has ended, so another call ended it while this one read.
        with unit_of_work() as work:
            upload = uploads.get(work, account_id=account_id, upload_id=upload_id)
            done = _before(work, upload, wanted)
        if done is None:
            raise InvariantBroken(f"A part of pending upload {upload_id} has no object.") from missing
        return done
    ended = _finish(store, incoming, wanted, upload_id)
    uploads.drop_parts(store, ended.upload)
    return ended


def _before(work: Work, upload: Upload, wanted: CompleteRequest) -> Completed | None:
    """What the same call made before; None for an upload that is pending."""
    if upload.status == UploadStatus.COMPLETED:
        if upload.part_ids != list(wanted.part_ids):
            raise UploadNotPending(
                f"Upload {upload.id} is completed already, with other parts. Use its file, or create a new upload.",
                param="part_ids",
            )
        file = work.session.get_one(File, upload.file_id)
        return Completed(upload, file if file.deleted_at is None else None)
    uploads.require_pending(upload, work.now)
    return None


def _ordered(work: Work, upload: Upload, part_ids: Sequence[str]) -> list[UploadPart]:
    # Text that is no id never reaches the database: it could hold what a database text cannot.
    known = [one for one in part_ids if ids.is_id("upload_part", one)]
    rows = select(UploadPart).where(UploadPart.upload_id == upload.id, UploadPart.id.in_(known))
    found = {part.id: part for part in work.session.scalars(rows)}
    for part_id in part_ids:
        if part_id not in found:
            raise InvalidRequest(
                f"Invalid 'part_ids': upload {upload.id} has no part '{short(part_id)}'. "
                "Name the ids that its parts were answered with.",
                code="invalid_value",
                param="part_ids",
            )
    together = sum(part.bytes for part in found.values())
    if together != upload.bytes:
        raise InvalidRequest(
            f"The parts have {together} bytes together, and upload {upload.id} was created with {upload.bytes} bytes. "
            "Name all parts of the file, or cancel this upload and create one with the right number of bytes.",
            code="upload_bytes_mismatch",
            param="part_ids",
        )
    return [found[part_id] for part_id in part_ids]


def _assemble(
    store: Store, profile: Profile, upload: Upload, parts: Sequence[UploadPart], *, digest: str | None
) -> Incoming:
    """The parts as one object under a fresh key, which no row names yet."""
    hashed = md5(usedforsecurity=False)
    with receiving.receive(store, upload.account_id, profile) as incoming:
        incoming.name(upload.filename)
        for part in parts:
            for chunk in store.stream(part.object_key):
                incoming.write(chunk)
                if digest is not None:
                    hashed.update(chunk)
        if incoming.bytes != upload.bytes:
            raise InvariantBroken(
                f"The parts of upload {upload.id} are not as long in the store as they were."
            )
        if digest is not None and hashed.hexdigest() != digest:
            raise InvalidRequest(
                f"The parts' MD5 is {hashed.hexdigest()}, and 'md5' is {digest}. Check the order of 'part_ids', or "
                "send the parts again.",
                code="md5_mismatch",
                param="md5",
            )
    return incoming


def _finish(store: Store, incoming: Incoming, wanted: CompleteRequest, upload_id: str) -> Completed:
    """Write the file's row and the upload's end, both or neither; of several at once one does."""
    try:
        with unit_of_work() as work:
            upload = uploads.get(work, account_id=incoming.account_id, upload_id=upload_id, lock=True)
            done = _before(work, upload, wanted)
            if done is None:
                file = receiving.add_row(work, incoming, expires_after_seconds=upload.expires_after_seconds)
                upload.part_ids = list(wanted.part_ids)
                uploads.end(work, upload, UploadStatus.COMPLETED, file=file)
                return Completed(upload, file, fresh=True)
    except Refused:
        # Only then is it sure that no row names the object: a lost commit's answer may still have been a yes.
        store.delete(incoming.object_key)
        raise
    store.delete(incoming.object_key)
    return done
