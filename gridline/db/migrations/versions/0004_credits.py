"""Credits: what a day's use, an account's statement, a batch's refunds and a model's history are found by."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_index("ix_holds_account_id_at", "holds", ["account_id", "at"])
    op.drop_index(op.f("ix_holds_account_id"), table_name="holds")
    op.create_index("ix_transactions_account_id_at_sequence", "transactions", ["account_id", "at", "sequence"])
    op.create_index("ix_transactions_batch_id", "transactions", ["batch_id"])
    op.create_index("ix_usage_facts_model_day", "usage_facts", ["model", "day"])
