"""A monthly budget that an account's owner sets, and how long its files are kept where the dialect goes by that."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("accounts", sa.Column("monthly_budget_nanos", sa.BigInteger(), nullable=True))
    op.add_column(
        "accounts", sa.Column("retention_days", sa.BigInteger(), nullable=False, server_default=sa.text("30"))
    )
    op.alter_column("accounts", "retention_days", server_default=None)
    op.create_check_constraint(
        "budget_not_negative", "accounts", "monthly_budget_nanos IS NULL OR monthly_budget_nanos >= 0"
    )
