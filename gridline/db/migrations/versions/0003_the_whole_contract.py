"""Uploads in parts, creates that a retry finds again, and how many requests an account may send."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"

GRANTS = """
GRANT SELECT, INSERT, UPDATE, DELETE ON uploads, upload_parts, recent_creates TO gridline_app;
GRANT SELECT ON uploads, upload_parts, recent_creates TO gridline_read;
"""


def upgrade() -> None:
    op.add_column("accounts", sa.Column("requests_per_minute_max", sa.BigInteger(), nullable=False, server_default="600"))
    op.alter_column("accounts", "requests_per_minute_max", server_default=None)
    op.create_table(
        "recent_creates",
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("batch_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_recent_creates_account_id_accounts")),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_recent_creates_batch_id_batches")),
        sa.PrimaryKeyConstraint("account_id", "fingerprint", name=op.f("pk_recent_creates")),
    )
    op.create_index("ix_recent_creates_created_at", "recent_creates", ["created_at"])
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
    op.create_table(
        "uploads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("mime_type", sa.Text(), nullable=False),
        sa.Column("expires_after_seconds", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("part_ids", postgresql.JSONB(), nullable=True),
        sa.Column("file_id", sa.Text(), nullable=True),
        sa.Column("swept_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_uploads_account_id_accounts")),
        sa.ForeignKeyConstraint(["file_id"], ["files.id"], name=op.f("fk_uploads_file_id_files")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uploads")),
    )
    op.create_index(
        "ix_uploads_account_id_pending", "uploads", ["account_id"], postgresql_where=sa.text("status = 'pending'")
    )
    op.create_index(
        "ix_uploads_expires_at_swept", "uploads", ["expires_at"], postgresql_where=sa.text("swept_at IS NULL")
    )
    op.create_table(
        "upload_parts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("upload_id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("object_key", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_upload_parts_account_id_accounts")),
        sa.ForeignKeyConstraint(["upload_id"], ["uploads.id"], name=op.f("fk_upload_parts_upload_id_uploads")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_upload_parts")),
    )
    op.create_index("ix_upload_parts_upload_id", "upload_parts", ["upload_id"])
    op.execute(GRANTS)
