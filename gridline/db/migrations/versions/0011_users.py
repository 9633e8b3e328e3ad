"""Users sign in with a password; a session is one sign-in, stored by the hash of its secret."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

# As with tokens, whoever only reads sees no hash.
GRANTS = """
GRANT SELECT, INSERT, DELETE ON sessions TO gridline_app;
GRANT UPDATE (seen_at) ON sessions TO gridline_app;
REVOKE SELECT ON users FROM gridline_read;
GRANT SELECT (id, email, created_at) ON users TO gridline_read;
"""


def upgrade() -> None:
    # Nobody could sign up before: where an operator wrote rows, an empty hash is one that no password has.
    op.add_column("users", sa.Column("password_hash", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.alter_column("users", "password_hash", server_default=None)
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id", "account_id"], ["members.user_id", "members.account_id"],
            name=op.f("fk_sessions_user_id_members"), ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("hash", name=op.f("uq_sessions_hash")),
    )
    op.create_index("ix_sessions_user_id_created_at", "sessions", ["user_id", "created_at"])
    op.execute(GRANTS)
