"""The platform's daily limit: how many credits' worth of batches may start in a UTC day, and what is used of it.

A batch counts on the day of its first lease, with its hold less what came back of it; a grant that may become a first
lease counts already. Decides nothing: admission is given what is left.
"""

from dataclasses import dataclass

from sqlalchemy import delete, text
from sqlalchemy.dialects.postgresql import insert

from gridline.capacity.tables import PlatformLimit
from gridline.clock import Days
from gridline.customers import audit
from gridline.db.work import Work
from gridline.errors import InvalidRequest
from gridline.money import credits_text

NAME = "credits_nanos_per_day"


@dataclass(frozen=True)
class Day:
    """A UTC day's limit (None: none is set) and what is used of it, in nano-credits."""

    limit_nanos: int | None
    used_nanos: int

    @property
    def left_nanos(self) -> int | None:
        """What is left: at 0 or below nothing more starts. None where no limit is set."""
        return None if self.limit_nanos is None else self.limit_nanos - self.used_nanos


def today(work: Work) -> Day:
    """The day of this unit of work."""
    limit = work.session.get(PlatformLimit, NAME, populate_existing=True)
    return Day(None if limit is None else limit.amount, _used(work))


def left_nanos(work: Work) -> int | None:
    """What may still start today; None where no limit is set, which costs no sum."""
    limit = work.session.get(PlatformLimit, NAME, populate_existing=True)
    return None if limit is None else limit.amount - _used(work)


def set_limit(work: Work, nanos_per_day: int | None, *, actor: str, why: str) -> None:
    """Set or (None) lift the limit. What waits is looked at again at once; the same limit again changes nothing else.

    Raises:
        InvalidRequest: a limit below zero.
    """
    if nanos_per_day is not None and nanos_per_day < 0:
        raise InvalidRequest(
            f"A daily limit is 0 credits or more, got {credits_text(nanos_per_day)}. Say 'none' for no limit.",
            param="credits_per_day",
        )
    if nanos_per_day is None:
        work.session.execute(delete(PlatformLimit).where(PlatformLimit.name == NAME))
    else:
        row = {"amount": nanos_per_day, "set_at": work.now, "set_by": actor}
        work.session.execute(
            insert(PlatformLimit)
            .values(name=NAME, **row)
            .on_conflict_do_update(index_elements=["name"], set_=row)
        )
    shown = None if nanos_per_day is None else credits_text(nanos_per_day)
    details = {"credits_per_day": shown, "why": why}
    audit.record(work, account_id=None, actor=actor, action="platform.daily_limit", details=details)
    work.notify("capacity")


_USED = text("""
SELECT coalesce(sum(h.amount_nanos - coalesce(r.returned_nanos, 0)), 0)
FROM batches b JOIN holds h ON h.batch_id = b.id LEFT JOIN resolutions r ON r.batch_id = b.id
WHERE b.first_lease_at >= :today AND b.first_lease_at < :tomorrow OR b.first_lease_at IS NULL AND b.id IN (
    SELECT batch_id FROM leases WHERE released_at IS NULL AND claimed_at IS NULL)
""")


def _used(work: Work) -> int:
    today = Days.of(work.now)
    days = {"today": today.begin, "tomorrow": today.end}
    return int(work.session.execute(_USED, days).scalar_one())
