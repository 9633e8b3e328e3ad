"""Fine-tuned models of accounts: LoRA adapters, which operators import and retire."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"

# Rows are never deleted: batches and usage name them. What may change is when one was retired.
GRANTS = """
GRANT SELECT, INSERT ON adapters TO gridline_app;
GRANT UPDATE (retired_at) ON adapters TO gridline_app;
GRANT SELECT ON adapters TO gridline_read;
"""


def upgrade() -> None:
    op.create_table(
        "adapters",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("short_id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("base", sa.Text(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("object_key", sa.Text(), nullable=False),
        sa.Column("config", postgresql.JSONB(), nullable=False),
        sa.Column("qlora", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_adapters_account_id_accounts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_adapters")),
        sa.UniqueConstraint("short_id", name=op.f("uq_adapters_short_id")),
    )
    op.create_index("ix_adapters_account_id", "adapters", ["account_id"])
    op.execute(GRANTS)
