"""Files: inputs that customers upload, outputs and error files that batches write."""

from datetime import datetime

from sqlalchemy import ForeignKey, Identity, Index
from sqlalchemy.orm import Mapped, mapped_column

from gridline.db.base import Base


class File(Base):
    """One stored file. A deleted row keeps its metadata; its object is gone."""

    __tablename__ = "files"
    __table_args__ = (
        Index("ix_files_account_id_created_at_sequence", "account_id", "created_at", "sequence"),
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
