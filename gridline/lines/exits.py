"""How a GPU job ends, as its exit code: the contract between the job and whoever started it."""

from enum import IntEnum


class JobExit(IntEnum):
    """Exit codes of ``python -m gpu_jobs.run``; anything else counts as CRASHED."""

    DONE = 0
    """Every line of the partition has a row in a closed segment."""
    CRASHED = 1
    """A fault of the job or its machine: what is in closed segments stands."""
    STOPPED = 3
    """Stop marker, deadline or SIGTERM: everything finished is in closed segments."""
    ENGINE_UNHEALTHY = 4
    """The engine never became healthy; no line ran, and this is not one of the three attempts (but see ENGINE_GONE_SECONDS)."""

    @classmethod
    def of(cls, code: int) -> "JobExit":
        """The meaning of a process's exit code (negative: killed by a signal)."""
        return cls(code) if code in {one.value for one in cls} else cls.CRASHED
