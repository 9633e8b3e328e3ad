"""Why a GPU job must stop, and how long its lines in flight may still take."""

import asyncio

from gridline.limits import CANCEL_GRACE_SECONDS

GRACE_SECONDS = {"cancel": CANCEL_GRACE_SECONDS}
"""Lines in flight get this long after a cancel; after a deadline, a lost lease or SIGTERM they get nothing."""


class Stop:
    """Asked once or more, read by every part of the job."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._over = asyncio.Event()
        self.reason: str | None = None

    def ask(self, reason: str) -> None:
        """Take no new lines, for this reason; a later and harder one (SIGTERM in a grace) cuts the grace."""
        if self.reason == reason:
            return
        self.reason = self.reason or reason
        self._asked.set()
        asyncio.get_running_loop().call_later(GRACE_SECONDS.get(reason, 0), self._over.set)

    @property
    def asked(self) -> bool:
        """Whether the job must stop."""
        return self._asked.is_set()

    async def over(self) -> None:
        """Until lines in flight may take no longer."""
        await self._over.wait()

    async def pause(self, seconds: float) -> None:
        """Sleep, but not past the stop."""
        await pause(self._asked, seconds)


async def pause(until: asyncio.Event, seconds: float) -> None:
    """Sleep that long, or until the event."""
    try:
        async with asyncio.timeout(seconds):
            await until.wait()
    except TimeoutError:
        return
