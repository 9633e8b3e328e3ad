"""Batches, their partitions and attempts, their events, and the runs that the keeper still has to start."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Identity, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from gridline.db.base import Base


class Batch(Base):
    """One batch. ``status`` is written by ``gridline.batches.moves`` and nobody else."""

    __tablename__ = "batches"
    __table_args__ = (
        Index("ix_batches_account_id_created_at_sequence", "account_id", "created_at", "sequence"),
        Index("ix_batches_open", "status", postgresql_where=text("ended_at IS NULL")),
        Index("ix_batches_input_file_open", "input_file_id", postgresql_where=text("ended_at IS NULL")),
        Index("ix_batches_first_lease_at", "first_lease_at"),
        Index(
            "ix_batches_objects_due",
            "ended_at",
            postgresql_where=text("ended_at IS NOT NULL AND objects_deleted_at IS NULL"),
        ),
        CheckConstraint("completed + failed + cancelled <= total OR total = 0", name="counts_within_total"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    sequence: Mapped[int] = mapped_column(Identity(), unique=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    created_by: Mapped[str]
    endpoint: Mapped[str]
    input_file_id: Mapped[str] = mapped_column(ForeignKey("files.id"))
    completion_window: Mapped[str]
    status: Mapped[str]
    batch_metadata: Mapped[dict[str, Any] | None]
    output_expires_after_seconds: Mapped[int | None]

    created_at: Mapped[datetime]
    start_by: Mapped[datetime]
    expires_at: Mapped[datetime]
    in_progress_at: Mapped[datetime | None]
    finalizing_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    failed_at: Mapped[datetime | None]
    expired_at: Mapped[datetime | None]
    cancelling_at: Mapped[datetime | None]
    cancelled_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]

    # What validation found. ``card`` is the copy of rates, model commit and adapters that the hold was made with.
    validated_at: Mapped[datetime | None]
    model: Mapped[str | None]
    card: Mapped[dict[str, Any] | None]
    ceiling_nanos: Mapped[int | None]
    input_tokens_estimate: Mapped[int | None]
    errors: Mapped[list[Any] | None]
    errors_total: Mapped[int] = mapped_column(default=0)
    error_code: Mapped[str | None]

    total: Mapped[int] = mapped_column(default=0)
    completed: Mapped[int] = mapped_column(default=0)
    failed: Mapped[int] = mapped_column(default=0)
    cancelled: Mapped[int] = mapped_column(default=0)
    input_tokens: Mapped[int] = mapped_column(default=0)
    output_tokens: Mapped[int] = mapped_column(default=0)
    output_file_id: Mapped[str | None]
    error_file_id: Mapped[str | None]

    # The wait, stored by whoever decided to wait.
    reason_code: Mapped[str | None]
    reason_since: Mapped[datetime | None]
    # 'deferred': its run waits inside Airflow; 'parked': its run has ended and the keeper resumes it; None: neither.
    waiting: Mapped[str | None]
    # The last run that had been asked for when it parked: only a later one may take it out of there.
    parked_after: Mapped[int] = mapped_column(default=0)
    first_lease_at: Mapped[datetime | None]
    any_line_ran: Mapped[bool] = mapped_column(default=False)
    # While an operator holds it: since when, the note for its customer, and the reason that shows again afterwards.
    operator_hold_at: Mapped[datetime | None]
    operator_hold_note: Mapped[str | None]
    reason_under_hold: Mapped[str | None]
    # When its GPU time was used up: from then it gets no lease, and ends as at its deadline.
    gpu_time_over_at: Mapped[datetime | None]
    # When its partitions, segments and progress objects were deleted.
    objects_deleted_at: Mapped[datetime | None]


class BatchEvent(Base):
    """What happened to a batch, in order, with the actor: append-only, read by the customer's timeline."""

    __tablename__ = "batch_events"
    __table_args__ = (Index("ix_batch_events_batch_id_sequence", "batch_id", "sequence"),)

    sequence: Mapped[int] = mapped_column(Identity(), primary_key=True)
    batch_id: Mapped[str] = mapped_column(ForeignKey("batches.id"))
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    at: Mapped[datetime]
    kind: Mapped[str]
    actor: Mapped[str]
    details: Mapped[dict[str, Any]]


class Partition(Base):
    """A slice of a batch, one GPU job. States: waiting, running, done, given_up."""

    __tablename__ = "partitions"

    batch_id: Mapped[str] = mapped_column(ForeignKey("batches.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    lines: Mapped[int]
    tokens_estimate: Mapped[int]
    state: Mapped[str]
    attempts: Mapped[int] = mapped_column(default=0)
    lines_done: Mapped[int] = mapped_column(default=0)
    lines_failed: Mapped[int] = mapped_column(default=0)
    model_commit: Mapped[str | None]
    engine_version: Mapped[str | None]
    runner_version: Mapped[str | None]


class Attempt(Base):
    """One try at a partition, made when its lease is claimed."""

    __tablename__ = "attempts"
    __table_args__ = (
        ForeignKeyConstraint(["batch_id", "partition"], ["partitions.batch_id", "partitions.number"]),
    )

    batch_id: Mapped[str] = mapped_column(primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    lease_id: Mapped[str] = mapped_column(unique=True)
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    outcome: Mapped[str | None]
    engine_healthy: Mapped[bool] = mapped_column(default=False)


class RunRequest(Base):
    """The outbox of the keeper: a run to start or to resume, written in the transaction that wants it."""

    __tablename__ = "run_requests"
    __table_args__ = (Index("ix_run_requests_due", "not_before", postgresql_where=text("done_at IS NULL")),)

    sequence: Mapped[int] = mapped_column(Identity(), primary_key=True)
    batch_id: Mapped[str] = mapped_column(ForeignKey("batches.id"), index=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    kind: Mapped[str]
    from_task: Mapped[str | None]
    created_at: Mapped[datetime]
    not_before: Mapped[datetime]
    tries: Mapped[int] = mapped_column(default=0)
    done_at: Mapped[datetime | None]


class IdempotencyKey(Base):
    """The first create under a key: for 24 h the same key and body find the same batch."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (Index("ix_idempotency_keys_created_at", "created_at"),)

    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    body_sha256: Mapped[str]
    batch_id: Mapped[str] = mapped_column(ForeignKey("batches.id"))
    created_at: Mapped[datetime]


class RecentCreate(Base):
    """The last create that looked like this: an SDK's retry of it without a key finds its batch.

    The fingerprint is of token, User-Agent and body.
    """

    __tablename__ = "recent_creates"
    __table_args__ = (Index("ix_recent_creates_created_at", "created_at"),)

    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    batch_id: Mapped[str] = mapped_column(ForeignKey("batches.id"))
    created_at: Mapped[datetime]
