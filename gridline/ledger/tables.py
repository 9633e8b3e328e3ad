"""Double entry in nano-credits. Transactions, entries, holds and resolutions are append-only.

``balances`` is kept by a database trigger on entries, so no code of ours can write it; its CHECK is what makes
``available >= 0`` true at every committed state. A deferred constraint trigger makes every transaction sum to 0.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Identity, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from gridline.db.base import Base


class Transaction(Base):
    """A balanced set of entries: who, when, why. Its id derives from what caused it, so a retry finds it."""

    __tablename__ = "transactions"
    __table_args__ = (
        Index("ix_transactions_account_id_sequence", "account_id", "sequence"),
        Index("ix_transactions_account_id_at_sequence", "account_id", "at", "sequence"),
        Index("ix_transactions_batch_id", "batch_id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    sequence: Mapped[int] = mapped_column(Identity(), unique=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    kind: Mapped[str]
    batch_id: Mapped[str | None] = mapped_column(ForeignKey("batches.id"))
    at: Mapped[datetime]
    actor: Mapped[str]
    why: Mapped[str]


class Entry(Base):
    """One leg. Positive amounts raise the book account's balance, negative ones lower it."""

    __tablename__ = "entries"
    __table_args__ = (CheckConstraint("amount_nanos <> 0", name="amount_not_zero"),)

    sequence: Mapped[int] = mapped_column(Identity(), primary_key=True)
    transaction_id: Mapped[str] = mapped_column(ForeignKey("transactions.id"), index=True)
    book: Mapped[str] = mapped_column(ForeignKey("balances.book"), index=True)
    amount_nanos: Mapped[int]


class Balance(Base):
    """A book account and its balance. Books: ``<account id>:available``, ``<account id>:held``, ``platform:*``."""

    __tablename__ = "balances"
    __table_args__ = (
        CheckConstraint("may_be_negative OR balance_nanos >= 0", name="balance_not_negative"),
        CheckConstraint("may_be_negative = (account_id IS NULL)", name="only_platform_may_be_negative"),
    )

    book: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id"), index=True)
    may_be_negative: Mapped[bool]
    balance_nanos: Mapped[int] = mapped_column(server_default=text("0"))


class Hold(Base):
    """The most a batch can cost, set aside once. It is resolved once, by a row of ``resolutions``."""

    __tablename__ = "holds"
    __table_args__ = (
        CheckConstraint("amount_nanos >= 0", name="amount_not_negative"),
        Index("ix_holds_account_id_at", "account_id", "at"),
    )

    batch_id: Mapped[str] = mapped_column(ForeignKey("batches.id"), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    amount_nanos: Mapped[int]
    transaction_id: Mapped[str | None] = mapped_column(ForeignKey("transactions.id"))
    at: Mapped[datetime]
    card: Mapped[dict[str, Any]]


class Resolution(Base):
    """How a hold ended: what was charged, what returned; one a batch."""

    __tablename__ = "resolutions"
    __table_args__ = (
        CheckConstraint("charged_nanos >= 0 AND returned_nanos >= 0", name="amounts_not_negative"),
    )

    batch_id: Mapped[str] = mapped_column(ForeignKey("holds.batch_id"), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), index=True)
    charged_nanos: Mapped[int]
    returned_nanos: Mapped[int]
    overrun_nanos: Mapped[int]
    lines: Mapped[int]
    input_tokens: Mapped[int]
    output_tokens: Mapped[int]
    transaction_id: Mapped[str | None] = mapped_column(ForeignKey("transactions.id"))
    at: Mapped[datetime]
