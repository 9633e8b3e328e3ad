"""The request log: one row for each line of each ended batch."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

GRANTS = """
GRANT SELECT, INSERT, DELETE ON logged_batches, logged_requests TO gridline_app;
GRANT SELECT ON logged_batches, logged_requests TO gridline_read;
"""


def _text(name: str, *, nullable: bool = False) -> "sa.Column[Any]":
    return sa.Column(name, sa.Text(), nullable=nullable)


def _whole(name: str, *, nullable: bool = False) -> "sa.Column[Any]":
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def upgrade() -> None:
    op.create_table(
        "logged_batches",
        _text("batch_id"),
        _text("account_id"),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_logged_batches_batch_id_batches")),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_logged_batches_account_id_accounts")),
        sa.PrimaryKeyConstraint("batch_id", name=op.f("pk_logged_batches")),
    )
    op.create_index("ix_logged_batches_at", "logged_batches", ["at"])
    op.create_table(
        "logged_requests",
        _text("batch_id"),
        _whole("number"),
        _text("account_id"),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        _text("custom_id"),
        _text("model"),
        _whole("status_code", nullable=True),
        _text("code", nullable=True),
        _whole("input_tokens"),
        _whole("output_tokens"),
        _whole("cost_nanos"),
        sa.PrimaryKeyConstraint("batch_id", "number", name=op.f("pk_logged_requests")),
    )
    op.create_index(
        "ix_logged_requests_account_id_at", "logged_requests", ["account_id", "at", "batch_id", "number"]
    )
    op.execute(GRANTS)
