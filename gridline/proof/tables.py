"""Proofs that were made of the whole platform, each with what it found."""

from datetime import datetime
from typing import Any

from sqlalchemy import Identity
from sqlalchemy.orm import Mapped, mapped_column

from gridline.db.base import Base


class Proof(Base):
    """One proof. ``sentences`` says which promises do not hold; ``broken`` is how many it found."""

    __tablename__ = "proofs"

    sequence: Mapped[int] = mapped_column(Identity(), primary_key=True)
    at: Mapped[datetime]
    broken: Mapped[int]
    sentences: Mapped[list[Any]]
