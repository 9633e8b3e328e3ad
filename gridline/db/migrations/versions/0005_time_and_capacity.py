"""An operator's hold, the platform's own limits, GPU time, and what retention deletes."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

GRANTS = """
GRANT SELECT, INSERT, UPDATE, DELETE ON platform_limits TO gridline_app;
GRANT SELECT ON platform_limits TO gridline_read;
"""


def upgrade() -> None:
    op.add_column("accounts", sa.Column("gpu_seconds_per_batch_max", sa.BigInteger(), nullable=True))
    op.add_column("batches", sa.Column("operator_hold_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("batches", sa.Column("operator_hold_note", sa.Text(), nullable=True))
    op.add_column("batches", sa.Column("reason_under_hold", sa.Text(), nullable=True))
    op.add_column("batches", sa.Column("gpu_time_over_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("batches", sa.Column("objects_deleted_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index("ix_batches_first_lease_at", "batches", ["first_lease_at"])
    op.create_index(
        "ix_batches_objects_due", "batches", ["ended_at"],
        postgresql_where=sa.text("ended_at IS NOT NULL AND objects_deleted_at IS NULL"),
    )
    op.create_index(
        "ix_files_expires_at_kept", "files", ["expires_at"], postgresql_where=sa.text("deleted_at IS NULL")
    )
    op.create_table(
        "platform_limits",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("set_by", sa.Text(), nullable=False),
        sa.CheckConstraint("amount >= 0", name=op.f("ck_platform_limits_amount_not_negative")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_platform_limits")),
    )
    op.execute(GRANTS)
