"""Users may sign in with an identity provider: found by issuer and subject, and without a password then."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

GRANTS = """
GRANT SELECT, INSERT ON identities TO gridline_app;
GRANT SELECT (issuer, user_id, created_at) ON identities TO gridline_read;
"""


def upgrade() -> None:
    # Nobody's password had an empty hash: now such a user says so.
    op.alter_column("users", "password_hash", nullable=True)
    op.execute("UPDATE users SET password_hash = NULL WHERE password_hash = ''")
    op.create_table(
        "identities",
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_identities_user_id_users")),
        sa.PrimaryKeyConstraint("issuer", "subject", name=op.f("pk_identities")),
    )
    op.create_index("ix_identities_user_id", "identities", ["user_id"])
    op.execute(GRANTS)
