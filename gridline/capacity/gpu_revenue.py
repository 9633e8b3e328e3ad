"""GPU time against revenue, for the operator: what batches took of GPUs, delivered and were charged. Writes nothing.

A batch counts on the UTC day of its end, with all its leases, failed attempts too: that time is the platform's cost. A
charge counts as it was made; refunds stand beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import text

from gridline.clock import Days
from gridline.db.work import Work
from gridline.money import NANOS_PER_CREDIT

SECONDS_PER_HOUR = 3600
LONGEST = timedelta(days=30)
"""No batch lives so long from its first lease: the bound lets the index on it be used."""

COLUMNS = {
    "day": "(b.ended_at AT TIME ZONE 'UTC')::date::text",
    "model": "b.model",
    "account": "a.name",
    "batch": "b.id",
}
"""By what rows can be added up."""

_ROWS = """
SELECT {columns}, count(*), sum(g.seconds), sum(coalesce(r.lines, 0)), sum(coalesce(r.input_tokens, 0)),
    sum(coalesce(r.output_tokens, 0)), sum(coalesce(r.charged_nanos, 0)), sum(f.nanos)
FROM batches b
JOIN accounts a ON a.id = b.account_id
LEFT JOIN resolutions r ON r.batch_id = b.id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(greatest(extract(epoch FROM coalesce(l.released_at, :now) - l.claimed_at), 0)), 0) AS seconds
    FROM leases l WHERE l.batch_id = b.id AND l.claimed_at IS NOT NULL
) g
CROSS JOIN LATERAL (
    SELECT coalesce(sum(e.amount_nanos), 0) AS nanos
    FROM transactions t JOIN entries e ON e.transaction_id = t.id
    WHERE t.batch_id = b.id AND t.kind = 'refund' AND e.amount_nanos > 0
) f
WHERE b.ended_at >= :begin AND b.ended_at < :end AND b.first_lease_at >= :earliest
GROUP BY {columns} ORDER BY {columns}
"""
# A clock that was set back makes a lease short, never negative.


@dataclass(frozen=True)
class Used:
    """What the batches of one row took, delivered and were charged."""

    of: tuple[str, ...]
    """What the row is of, as asked: a day, a model, an account, a batch."""
    batches: int
    gpu_seconds: Decimal
    lines: int
    input_tokens: int
    output_tokens: int
    charged_nanos: int
    refunded_nanos: int

    @property
    def credits_per_gpu_hour(self) -> Decimal | None:
        """What an hour of one GPU brought in, refunds taken off; None without GPU time."""
        if not self.gpu_seconds:
            return None
        kept = Decimal(self.charged_nanos - self.refunded_nanos) / NANOS_PER_CREDIT
        return kept * SECONDS_PER_HOUR / self.gpu_seconds


def used(work: Work, days: Days, by: Sequence[str]) -> list[Used]:
    """Of batches that ended on these days and had a GPU, added up by these of ``COLUMNS``."""
    columns = ", ".join(COLUMNS[one] for one in by)
    asked: dict[str, Any] = {
        "now": work.now,
        "begin": days.begin,
        "end": days.end,
        "earliest": days.begin - LONGEST,
    }
    found = work.session.execute(text(_ROWS.format(columns=columns)), asked)
    return [_row(tuple(str(one) for one in row[: len(by)]), row[len(by) :]) for row in map(tuple, found)]


def total(rows: Sequence[Used]) -> Used:
    """All rows as one."""
    return Used(
        of=(),
        batches=sum(one.batches for one in rows),
        gpu_seconds=sum((one.gpu_seconds for one in rows), Decimal(0)),
        lines=sum(one.lines for one in rows),
        input_tokens=sum(one.input_tokens for one in rows),
        output_tokens=sum(one.output_tokens for one in rows),
        charged_nanos=sum(one.charged_nanos for one in rows),
        refunded_nanos=sum(one.refunded_nanos for one in rows),
    )


def _row(of: tuple[str, ...], figures: Sequence[Any]) -> Used:
    batches, seconds, *whole = figures
    lines, input_tokens, output_tokens, charged, refunded = map(int, whole)
    return Used(
        of=of,
        batches=int(batches),
        gpu_seconds=Decimal(seconds),
        lines=lines,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        charged_nanos=charged,
        refunded_nanos=refunded,
    )
