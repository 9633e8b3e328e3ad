"""Decides whether and how a batch ends. Pure over the batch's row and its partitions; writes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gridline.batches import waits
from gridline.batches.reasons import ReasonCode
from gridline.batches.states import TERMINAL, Status, Waiting
from gridline.batches.tables import Batch, Partition

PARTITION_OVER = ("done", "given_up")


@dataclass(frozen=True)
class Ending:
    """The end to take: a terminal status, what lines without a result get, and for ``failed`` the code."""

    status: Status
    code: str
    message: str
    unless_a_line_ran: bool = False
    """``failed`` only: when a line has run after all, the batch does not end this way."""


EXPIRED = Ending(Status.EXPIRED, "batch_expired", "The batch expired before this request was run.")
GPU_TIME_OVER = Ending(
    Status.EXPIRED,
    "batch_expired",
    "The batch had used all the GPU time that it may use before this request was run.",
)
CANCELLED = Ending(
    Status.CANCELLED, "batch_cancelled", "The batch was cancelled before this request was run."
)
COMPLETED = Ending(
    Status.COMPLETED, "server_error", "This request could not be run. It is not charged; send it again."
)
GIVEN_UP = Ending(
    Status.FAILED, "server_error", "The batch could not be run. Nothing was charged; create it again."
)
NO_CAPACITY = Ending(
    Status.FAILED,
    "capacity_unavailable",
    "No GPU capacity became free within the window's start bound. Nothing ran and nothing was charged; "
    "create the batch again when there is less load, or with completion_window 72h.",
    unless_a_line_ran=True,
)
NO_CREDIT = Ending(
    Status.FAILED,
    "insufficient_quota",
    "The account's credit did not cover the most this batch can cost within 48 hours. Nothing ran and nothing "
    "was charged; add credit and create the batch again.",
    unless_a_line_ran=True,
)


def decide(
    batch: Batch, partitions: Sequence[Partition], now: datetime, *, run_over: bool, held: bool = False
) -> Ending | None:
    """The end that is due, or None.

    ``run_over``: the batch's run has ended, so nothing more will come of it. ``held``: its credit is held, so it
    waits for that no more, whatever its reason still says.
    Whether ``COMPLETED`` becomes ``GIVEN_UP`` (nothing ran at all) is for ``finish`` to see in the results.
    """
    if batch.status in TERMINAL:
        return None
    # A file whose every line was refused has no partitions: that it was read is all there is to do.
    all_over = all(one.state in PARTITION_OVER for one in partitions)
    not_started = not batch.any_line_ran and now >= batch.start_by
    credit = waits.true_reason(batch) == ReasonCode.CUSTOMER_CREDIT and not held
    rules = (
        (batch.status == Status.CANCELLING, CANCELLED),
        (batch.status == Status.FINALIZING, COMPLETED),
        # A batch of which no line ran fails at its start bound, also when its deadline has passed meanwhile.
        (batch.any_line_ran and now >= batch.expires_at, EXPIRED),
        (batch.validated_at is not None and all_over, COMPLETED),
        (batch.gpu_time_over_at is not None, GPU_TIME_OVER),
        (not_started, NO_CREDIT if credit else NO_CAPACITY),
        (run_over and batch.waiting != Waiting.PARKED, COMPLETED),
    )
    return next((ending for due, ending in rules if due), None)
