"""One account's uploads in parts, as the API makes them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.files import assembling, parts, uploads
from gridline.files.assembling import Completed
from gridline.files.requests import CompleteRequest, UploadRequest
from gridline.files.tables import File, Upload
from gridline.profiles.profile import load
from gridline.storage.objects import Store


@dataclass(frozen=True)
class Sender:
    """Opens uploads and sends parts for an account."""

    account_id: str
    store: Store

    def open(self, size: int, *, seconds: int | None = None) -> str:
        """A new upload for a file of ``size`` bytes; its id."""
        wanted = UploadRequest("r.jsonl", "batch", size, "application/jsonl", seconds)
        with unit_of_work() as work:
            return uploads.create(work, account_id=self.account_id, request=wanted).id

    def part(self, upload_id: str, data: bytes) -> str:
        """One part, written in two pieces; its id."""
        with unit_of_work() as work:
            room = parts.room(work, account_id=self.account_id, upload_id=upload_id)
        with parts.receive(self.store, room) as incoming:
            incoming.write(data[:1])
            incoming.write(data[1:])
        return parts.keep(self.store, incoming).id

    def complete(self, upload_id: str, part_ids: Sequence[str], *, md5: str | None = None) -> Completed:
        """The completion with these parts."""
        wanted = CompleteRequest(tuple(part_ids), md5)
        return assembling.complete(
            self.store, load("gridline"), wanted, account_id=self.account_id, upload_id=upload_id
        )

    def cancel(self, upload_id: str) -> Upload:
        """The cancelled upload, its parts dropped."""
        with unit_of_work() as work:
            upload = uploads.cancel(work, account_id=self.account_id, upload_id=upload_id)
        uploads.drop_parts(self.store, upload)
        return upload

    def upload(self, upload_id: str) -> Upload:
        """The upload's row."""
        with unit_of_work() as work:
            return uploads.get(work, account_id=self.account_id, upload_id=upload_id)

    def files(self) -> Sequence[File]:
        """The account's files."""
        with unit_of_work() as work:
            return work.session.scalars(select(File).where(File.account_id == self.account_id)).all()

    def used(self) -> tuple[int, int]:
        """Files and bytes that count against the account's quota."""
        with unit_of_work() as work:
            account = work.session.get_one(Account, self.account_id)
            return account.files_count, account.files_bytes

    def objects(self, room: str) -> list[str]:
        """Keys of the account's objects in ``files`` or ``uploads``."""
        return self.store.list(f"{room}/{self.account_id}/")
