"""Notices: webhooks with the deliveries that they are owed, and messages to the operator."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"

# Who only reads may see what a webhook is, never what it signs with.
GRANTS = """
GRANT SELECT, INSERT, UPDATE, DELETE ON webhooks, webhook_deliveries TO gridline_app;
GRANT SELECT, INSERT ON messages TO gridline_app;
GRANT UPDATE (mail_due_at, mail_attempts, mailed_at) ON messages TO gridline_app;
GRANT SELECT (id, sequence, account_id, url, events, old_secret_until, created_at, failing_since, disabled_at,
    disabled_reason) ON webhooks TO gridline_read;
GRANT SELECT ON webhook_deliveries, messages TO gridline_read;
"""


def _moment(name: str, *, nullable: bool = True) -> "sa.Column[Any]":
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> "sa.Column[Any]":
    return sa.Column(name, sa.Text(), nullable=nullable)


def _sequence() -> "sa.Column[Any]":
    return sa.Column("sequence", sa.BigInteger(), sa.Identity(always=False), nullable=False)


def upgrade() -> None:
    op.create_table(
        "webhooks",
        _text("id"),
        _sequence(),
        _text("account_id"),
        _text("url"),
        sa.Column("events", postgresql.JSONB(), nullable=False),
        _text("secret"),
        _text("old_secret", nullable=True),
        _moment("old_secret_until"),
        _moment("created_at", nullable=False),
        _moment("failing_since"),
        _moment("disabled_at"),
        _text("disabled_reason", nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_webhooks_account_id_accounts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_index("ix_webhooks_account_id_sequence", "webhooks", ["account_id", "sequence"])
    op.create_table(
        "webhook_deliveries",
        _text("webhook_id"),
        _text("event_id"),
        _sequence(),
        _text("account_id"),
        _text("type"),
        _text("subject_id"),
        _moment("created_at", nullable=False),
        _moment("due_at"),
        _moment("claimed_until"),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        _moment("last_attempt_at"),
        sa.Column("last_status", sa.BigInteger(), nullable=True),
        _text("last_error", nullable=True),
        _moment("delivered_at"),
        _moment("given_up_at"),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_webhook_deliveries_webhook_id_webhooks"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("webhook_id", "event_id", name=op.f("pk_webhook_deliveries")),
    )
    op.create_index("ix_webhook_deliveries_webhook_id_sequence", "webhook_deliveries", ["webhook_id", "sequence"])
    op.create_index("ix_webhook_deliveries_created_at", "webhook_deliveries", ["created_at"])
    op.create_index(
        "ix_webhook_deliveries_due_at", "webhook_deliveries", ["due_at"], postgresql_where="due_at IS NOT NULL"
    )
    op.create_table(
        "messages",
        _text("id"),
        _sequence(),
        _text("account_id"),
        _text("batch_id", nullable=True),
        _text("text"),
        _text("actor"),
        _moment("created_at", nullable=False),
        _moment("mail_due_at"),
        sa.Column("mail_attempts", sa.BigInteger(), nullable=False),
        _moment("mailed_at"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_messages_account_id_accounts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
    )
    op.create_index("ix_messages_created_at_sequence", "messages", ["created_at", "sequence"])
    op.create_index("ix_messages_mail_due_at", "messages", ["mail_due_at"], postgresql_where="mail_due_at IS NOT NULL")
    op.execute(GRANTS)
