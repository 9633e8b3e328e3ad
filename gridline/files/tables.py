"""Files: inputs that customers upload, outputs and error files that batches write."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Identity, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from gridline.db.base import Base


class File(Base):
    """One stored file. A deleted row keeps its metadata; its object is gone."""

    __tablename__ = "files"
    __table_args__ = (
        Index("ix_files_account_id_created_at_sequence", "account_id", "created_at", "sequence"),
        Index("ix_files_expires_at_kept", "expires_at", postgresql_where=text("deleted_at IS NULL")),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    sequence: Mapped[int] = mapped_column(Identity(), unique=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    purpose: Mapped[str]
    filename: Mapped[str]
    bytes: Mapped[int]
    sha256: Mapped[str]
    object_key: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]
    batch_id: Mapped[str | None] = mapped_column(index=True)


class Upload(Base):
    """A file that comes in parts. States: pending, completed, cancelled, expired."""

    __tablename__ = "uploads"
    __table_args__ = (
        Index("ix_uploads_account_id_pending", "account_id", postgresql_where=text("status = 'pending'")),
        Index("ix_uploads_expires_at_swept", "expires_at", postgresql_where=text("swept_at IS NULL")),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    filename: Mapped[str]
    purpose: Mapped[str]
    bytes: Mapped[int]
    mime_type: Mapped[str]
    expires_after_seconds: Mapped[int | None]
    status: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    # The parts that the file was made of, in order, and the file: what a repeated complete is held against.
    part_ids: Mapped[list[Any] | None]
    file_id: Mapped[str | None] = mapped_column(ForeignKey("files.id"))
    # When its parts' objects were deleted.
    swept_at: Mapped[datetime | None]


class UploadPart(Base):
    """One part of an upload; its object holds its bytes until the upload ends."""

    __tablename__ = "upload_parts"
    __table_args__ = (Index("ix_upload_parts_upload_id", "upload_id"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    upload_id: Mapped[str] = mapped_column(ForeignKey("uploads.id"))
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    bytes: Mapped[int]
    object_key: Mapped[str]
    created_at: Mapped[datetime]
