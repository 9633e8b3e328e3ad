"""The statuses of a batch and the one table of legal edges between them (product B1, B7)."""

from enum import StrEnum


class Status(StrEnum):
    """OpenAI's batch statuses."""

    VALIDATING = "validating"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.EXPIRED, Status.CANCELLED})

# in_progress -> failed is legal only while no line has run; ``moves`` checks that.
EDGES: dict[Status, frozenset[Status]] = {
    Status.VALIDATING: frozenset({Status.IN_PROGRESS, Status.FAILED, Status.CANCELLING, Status.EXPIRED}),
    Status.IN_PROGRESS: frozenset({Status.FINALIZING, Status.FAILED, Status.CANCELLING, Status.EXPIRED}),
    Status.FINALIZING: frozenset({Status.COMPLETED, Status.EXPIRED}),
    Status.CANCELLING: frozenset({Status.CANCELLED}),
    Status.COMPLETED: frozenset(),
    Status.FAILED: frozenset(),
    Status.EXPIRED: frozenset(),
    Status.CANCELLED: frozenset(),
}


class Waiting(StrEnum):
    """How a batch without capacity or credit waits."""

    DEFERRED = "deferred"
    PARKED = "parked"
