"""Qualifications: a real run of known prompts on the engine, recorded. A model is listed once it has one."""

from datetime import datetime
from typing import Any

from sqlalchemy import Identity, Index
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
