"""Mails to users about ended batches: who asked for them, and what is owed."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

# Who only reads may see who is mailed, never a code.
GRANTS = """
GRANT SELECT, INSERT, UPDATE, DELETE ON mail_choices, owed_mails TO gridline_app;
GRANT SELECT (user_id, account_id, asked_at, tries, confirmed_at) ON mail_choices TO gridline_read;
GRANT SELECT ON owed_mails TO gridline_read;
"""


def _moment(name: str, *, nullable: bool = True) -> "sa.Column[Any]":
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> "sa.Column[Any]":
    return sa.Column(name, sa.Text(), nullable=nullable)


def _whole(name: str) -> "sa.Column[Any]":
    return sa.Column(name, sa.BigInteger(), nullable=False)


def upgrade() -> None:
    op.create_table(
        "mail_choices",
        _text("user_id"),
        _text("account_id"),
        _text("code", nullable=True),
        _moment("asked_at", nullable=False),
        _whole("tries"),
        _moment("confirmed_at"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_mail_choices_user_id_users")),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_mail_choices_account_id_accounts")),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_mail_choices")),
    )
    op.create_index(
        "ix_mail_choices_account_id", "mail_choices", ["account_id"], postgresql_where=sa.text("confirmed_at IS NOT NULL")
    )
    op.create_table(
        "owed_mails",
        _text("user_id"),
        _text("event_id"),
        _text("account_id"),
        _text("type"),
        _text("subject_id"),
        _moment("created_at", nullable=False),
        _moment("due_at"),
        _whole("attempts"),
        _moment("mailed_at"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["mail_choices.user_id"], name=op.f("fk_owed_mails_user_id_mail_choices"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "event_id", name=op.f("pk_owed_mails")),
    )
    op.create_index("ix_owed_mails_due_at", "owed_mails", ["due_at"], postgresql_where=sa.text("due_at IS NOT NULL"))
    op.create_index("ix_owed_mails_created_at", "owed_mails", ["created_at"])
    op.execute(GRANTS)
