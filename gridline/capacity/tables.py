"""Pools of GPUs, the leases on them, and the platform's own limits. A lease is for one attempt at one partition."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Identity, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from gridline.db.base import Base


class Pool(Base):
    """GPUs that serve the same models in the same place; seeded from GRIDLINE_POOLS."""

    __tablename__ = "pools"
    __table_args__ = (CheckConstraint("gpus >= 0", name="gpus_not_negative"),)

    name: Mapped[str] = mapped_column(primary_key=True)
    gpus: Mapped[int]
    models: Mapped[list[Any]]
    datacenter: Mapped[bool]


class Lease(Base):
    """A grant (``claimed_at`` null), then the timed right to a GPU. ``fence`` grows with every lease."""

    __tablename__ = "leases"
    __table_args__ = (
        ForeignKeyConstraint(["batch_id", "partition"], ["partitions.batch_id", "partitions.number"]),
        Index(
            "uq_leases_live_partition",
            "batch_id",
            "partition",
            unique=True,
            postgresql_where=text("released_at IS NULL"),
        ),
        Index("ix_leases_live_pool", "pool", postgresql_where=text("released_at IS NULL")),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    fence: Mapped[int] = mapped_column(Identity(), unique=True)
    pool: Mapped[str] = mapped_column(ForeignKey("pools.name"))
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    batch_id: Mapped[str] = mapped_column(index=True)
    partition: Mapped[int]
    granted_at: Mapped[datetime]
    claim_by: Mapped[datetime | None]
    claimed_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    released_at: Mapped[datetime | None]
    outcome: Mapped[str | None]


class PlatformLimit(Base):
    """A limit of the platform as a whole, by name; no row, no limit. Who set it and why is in the audit."""

    __tablename__ = "platform_limits"
    __table_args__ = (CheckConstraint("amount >= 0", name="amount_not_negative"),)

    name: Mapped[str] = mapped_column(primary_key=True)
    amount: Mapped[int]
    set_at: Mapped[datetime]
    set_by: Mapped[str]
