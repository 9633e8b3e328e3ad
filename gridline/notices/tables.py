"""Webhooks, their deliveries (the outbox), and messages to the operator."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Identity, Index
from sqlalchemy.orm import Mapped, mapped_column

from gridline.db.base import Base


class Webhook(Base):
    """An address of a customer that hears of ended batches. It is disabled while ``disabled_at`` is set."""

    __tablename__ = "webhooks"
    __table_args__ = (Index("ix_webhooks_account_id_sequence", "account_id", "sequence"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    sequence: Mapped[int] = mapped_column(Identity())
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    url: Mapped[str]
    events: Mapped[list[Any]]
    # In clear: it signs each delivery, so a hash would not do. The read-only role cannot see it.
    secret: Mapped[str]
    old_secret: Mapped[str | None]
    old_secret_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    # Since when nothing was delivered although it was tried; None while all is well.
    failing_since: Mapped[datetime | None]
    disabled_at: Mapped[datetime | None]
    disabled_reason: Mapped[str | None]


class Delivery(Base):
    """One event for one webhook. It is open while ``due_at`` is set, then delivered or given up."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        Index("ix_webhook_deliveries_webhook_id_sequence", "webhook_id", "sequence"),
        Index("ix_webhook_deliveries_created_at", "created_at"),
        # What is open, for the keeper: few rows, however many were delivered.
        Index("ix_webhook_deliveries_due_at", "due_at", postgresql_where="due_at IS NOT NULL"),
    )

    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"), primary_key=True)
    event_id: Mapped[str] = mapped_column(primary_key=True)
    sequence: Mapped[int] = mapped_column(Identity())
    account_id: Mapped[str]
    type: Mapped[str]
    # What the event is about: a batch, or the webhook itself for a test.
    subject_id: Mapped[str]
    created_at: Mapped[datetime]
    due_at: Mapped[datetime | None]
    # Until then somebody is sending it; whoever died there is past it soon.
    claimed_until: Mapped[datetime | None]
    attempts: Mapped[int] = mapped_column(default=0)
    last_attempt_at: Mapped[datetime | None]
    last_status: Mapped[int | None]
    last_error: Mapped[str | None]
    delivered_at: Mapped[datetime | None]
    given_up_at: Mapped[datetime | None]


class Message(Base):
    """What a customer wrote to the operator: read with ``gridline ops messages``, and mailed where mail is set up."""

    __tablename__ = "messages"
    __table_args__ = (
        Index("ix_messages_created_at_sequence", "created_at", "sequence"),
        Index("ix_messages_mail_due_at", "mail_due_at", postgresql_where="mail_due_at IS NOT NULL"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    sequence: Mapped[int] = mapped_column(Identity())
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    batch_id: Mapped[str | None]
    text: Mapped[str]
    actor: Mapped[str]
    created_at: Mapped[datetime]
    mail_due_at: Mapped[datetime | None]
    mail_attempts: Mapped[int] = mapped_column(default=0)
    mailed_at: Mapped[datetime | None]


class MailChoice(Base):
    """A user's wish to be mailed when batches end. It holds from the moment when the code that was mailed came back."""

    __tablename__ = "mail_choices"
    __table_args__ = (
        Index("ix_mail_choices_account_id", "account_id", postgresql_where="confirmed_at IS NOT NULL"),
    )

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    # In clear until it came back: it is mailed, so a hash would not do. The read-only role cannot see it.
    code: Mapped[str | None]
    asked_at: Mapped[datetime]
    tries: Mapped[int] = mapped_column(default=0)
    confirmed_at: Mapped[datetime | None]


class OwedMail(Base):
    """One mail for one user. It is open while ``due_at`` is set, then taken by the mail server or given up."""

    __tablename__ = "owed_mails"
    __table_args__ = (
        Index("ix_owed_mails_due_at", "due_at", postgresql_where="due_at IS NOT NULL"),
        Index("ix_owed_mails_created_at", "created_at"),
    )

    user_id: Mapped[str] = mapped_column(
        ForeignKey("mail_choices.user_id", ondelete="CASCADE"), primary_key=True
    )
    event_id: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[str]
    type: Mapped[str]
    # What it is about: a batch, or the user for a code.
    subject_id: Mapped[str]
    created_at: Mapped[datetime]
    due_at: Mapped[datetime | None]
    attempts: Mapped[int] = mapped_column(default=0)
    mailed_at: Mapped[datetime | None]
