"""Usage by batch, model and UTC day of settlement."""

from datetime import date

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
