"""What each hourly proof of the platform found."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "proofs",
        sa.Column("sequence", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("broken", sa.BigInteger(), nullable=False),
        sa.Column("sentences", postgresql.JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_proofs")),
    )
    op.execute("GRANT SELECT, INSERT ON proofs TO gridline_app")
    op.execute("GRANT SELECT ON proofs TO gridline_read")
