"""Usage by batch, model and UTC day of settlement, and the request log."""

from datetime import date, datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from gridline.db.base import Base


class UsageFact(Base):
    """What one batch used of one model (or adapter), written once when it settles."""

    __tablename__ = "usage_facts"
    __table_args__ = (
        Index("ix_usage_facts_account_id_day", "account_id", "day"),
        Index("ix_usage_facts_model_day", "model", "day"),
    )

    batch_id: Mapped[str] = mapped_column(ForeignKey("batches.id"), primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    day: Mapped[date]
    lines: Mapped[int]
    input_tokens: Mapped[int]
    output_tokens: Mapped[int]
    amount_nanos: Mapped[int]


class LoggedBatch(Base):
    """That a batch's lines are in the request log."""

    __tablename__ = "logged_batches"
    __table_args__ = (Index("ix_logged_batches_at", "at"),)

    batch_id: Mapped[str] = mapped_column(ForeignKey("batches.id"), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    # When the batch ended.
    at: Mapped[datetime]


class LoggedRequest(Base):
    """One line of an ended batch, as the request log shows it. No foreign keys: it is written by the ten thousand."""

    __tablename__ = "logged_requests"
    __table_args__ = (Index("ix_logged_requests_account_id_at", "account_id", "at", "batch_id", "number"),)

    batch_id: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    account_id: Mapped[str]
    at: Mapped[datetime]
    custom_id: Mapped[str]
    model: Mapped[str]
    status_code: Mapped[int | None]
    code: Mapped[str | None]
    input_tokens: Mapped[int]
    output_tokens: Mapped[int]
    cost_nanos: Mapped[int]
