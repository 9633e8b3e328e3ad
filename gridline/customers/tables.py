"""Accounts, users, tokens, sessions. Secrets are stored as hashes; what is shown again of a token is its last four characters."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Identity, Index
from sqlalchemy.orm import Mapped, mapped_column

from gridline import limits
from gridline.db.base import Base


class Account(Base):
    """Who owns files, batches, tokens and credits."""

    __tablename__ = "accounts"
    __table_args__ = (
        CheckConstraint("open_batches >= 0", name="open_batches_not_negative"),
        CheckConstraint("files_count >= 0 AND files_bytes >= 0", name="files_not_negative"),
        CheckConstraint(
            "monthly_budget_nanos IS NULL OR monthly_budget_nanos >= 0", name="budget_not_negative"
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime]
    open_batches: Mapped[int] = mapped_column(default=0)
    open_batches_max: Mapped[int]
    leases_max: Mapped[int]
    daily_credits_nanos_max: Mapped[int]
    # What its owner lets it spend in a UTC month; None: as much as there is.
    monthly_budget_nanos: Mapped[int | None]
    requests_per_minute_max: Mapped[int] = mapped_column(default=limits.REQUESTS_PER_MINUTE_DEFAULT)
    datacenter_only: Mapped[bool] = mapped_column(default=False)
    # How long its files are kept, in dialects that go by it.
    retention_days: Mapped[int] = mapped_column(default=limits.RETENTION_DAYS_DEFAULT)
    # GPU seconds that each batch may use; None: as many as its window holds.
    gpu_seconds_per_batch_max: Mapped[int | None]
    files_count: Mapped[int] = mapped_column(default=0)
    files_bytes: Mapped[int] = mapped_column(default=0)


class User(Base):
    """A person who signs in with an e-mail, kept in its normal form, and a password, kept as an argon2 hash.

    Who signs in with an identity provider alone has no password.
    """

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    password_hash: Mapped[str | None]
    created_at: Mapped[datetime]


class ProviderIdentity(Base):
    """A user as an OpenID Connect provider knows them: its subject never means anybody else."""

    __tablename__ = "identities"

    issuer: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    created_at: Mapped[datetime]


class Member(Base):
    """A user's role in an account."""

    __tablename__ = "members"

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), primary_key=True)
    role: Mapped[str]


class Session(Base):
    """A user's sign-in to an account, until it ends; its row is deleted when it does. The secret is stored as a hash."""

    __tablename__ = "sessions"
    __table_args__ = (
        # Who is no longer a member is no longer signed in.
        ForeignKeyConstraint(
            ["user_id", "account_id"], ["members.user_id", "members.account_id"], ondelete="CASCADE"
        ),
        Index("ix_sessions_user_id_created_at", "user_id", "created_at"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str]
    account_id: Mapped[str]
    hash: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class Token(Base):
    """A bearer token of an account; the text itself is shown once and never stored."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), index=True)
    name: Mapped[str]
    hash: Mapped[str] = mapped_column(unique=True)
    last_four: Mapped[str]
    scopes: Mapped[list[Any]]
    created_at: Mapped[datetime]
    created_by: Mapped[str]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class Audit(Base):
    """What operators, users and tokens did to accounts: append-only."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_account_id_sequence", "account_id", "sequence"),)

    sequence: Mapped[int] = mapped_column(Identity(), primary_key=True)
    account_id: Mapped[str | None]
    at: Mapped[datetime]
    actor: Mapped[str]
    action: Mapped[str]
    details: Mapped[dict[str, Any]]
