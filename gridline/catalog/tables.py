"""Qualifications (a model is listed once a real run on the engine passed) and the adapters of customers."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Identity, Index
from sqlalchemy.orm import Mapped, mapped_column

from gridline.db.base import Base


class Qualification(Base):
    """One qualification run of a model at a commit on an engine version."""

    __tablename__ = "qualifications"
    __table_args__ = (Index("ix_qualifications_model_commit", "model", "commit"),)

    sequence: Mapped[int] = mapped_column(Identity(), primary_key=True)
    model: Mapped[str]
    commit: Mapped[str]
    engine_version: Mapped[str]
    passed: Mapped[bool]
    tokens_per_second: Mapped[int]
    details: Mapped[dict[str, Any]]
    at: Mapped[datetime]


class Adapter(Base):
    """A fine-tuned model of one account; its weights are in the object store for as long as a batch may need them."""

    __tablename__ = "adapters"

    id: Mapped[str] = mapped_column(primary_key=True)
    short_id: Mapped[str] = mapped_column(unique=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), index=True)
    base: Mapped[str]
    rank: Mapped[int]
    bytes: Mapped[int]
    sha256: Mapped[str]
    object_key: Mapped[str]
    config: Mapped[dict[str, Any]]
    # Trained on a 4-bit base: on the bf16 one it may answer slightly differently.
    qlora: Mapped[bool]
    created_at: Mapped[datetime]
    retired_at: Mapped[datetime | None]
