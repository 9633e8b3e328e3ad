"""Which requests for a run are older than a batch's parking."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    # A batch that is parked while this runs can have its run asked for by any request, as before.
    op.add_column(
        "batches", sa.Column("parked_after", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
    )
    op.alter_column("batches", "parked_after", server_default=None)
