"""The request log: one row for each line of each ended batch, kept for the days that the dialect says.

Collating leaves the rows of a batch as an object beside its results; the keeper copies them here after the batch has
ended, so that no batch waits for its log.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, select, tuple_
from sqlalchemy.dialects.postgresql import insert

from gridline.clock import Days, unix
from gridline.db.work import Work
from gridline.errors import NotFound
from gridline.lines.request_rows import RequestRow
from gridline.money import credits_text
from gridline.usage.charging import charge_nanos
from gridline.usage.tables import LoggedBatch, LoggedRequest

FORGET_ROWS = 20_000

_COLUMNS = (
    "account_id", "batch_id", "number", "at", "custom_id", "model", "status_code", "code",
    "input_tokens", "output_tokens", "cost_nanos",
)  # fmt: skip
_COPY = f"COPY logged_requests ({', '.join(_COLUMNS)}) FROM STDIN"


def record(work: Work, logged: LoggedBatch, card: dict[str, Any] | None, rows: Iterator[RequestRow]) -> bool:
    """Write a batch's rows, once however often and by however many it is asked; whether this call did.

    Args:
        work: the unit of work; all rows are there when it commits, or none.
        logged: whose rows, and when the batch ended.
        card: the rates that the batch was charged at.
        rows: its lines.
    """
    mine = work.session.execute(
        insert(LoggedBatch)
        .values(batch_id=logged.batch_id, account_id=logged.account_id, at=logged.at)
        .on_conflict_do_nothing(index_elements=[LoggedBatch.batch_id])
        .returning(LoggedBatch.batch_id)
    ).one_or_none()
    if mine is None:
        return False
    cursor = work.session.connection().connection.cursor()
    with cursor.copy(_COPY) as copy:
        for row in rows:
            cost = 0 if row.code or card is None else charge_nanos(card, row.input_tokens, row.output_tokens)
            copy.write_row(
                (
                    logged.account_id, logged.batch_id, row.number, logged.at, row.custom_id, row.model,
                    row.status_code, row.code, row.input_tokens, row.output_tokens, cost,
                )
            )  # fmt: skip
    return True


def of_batch(
    work: Work, account_id: str, batch_id: str, *, after: str | None, limit: int
) -> tuple[list[LoggedRequest], bool]:
    """Up to ``limit`` of a batch's requests in input order, after the given one; and whether there are more."""
    rows = select(LoggedRequest).where(
        LoggedRequest.batch_id == batch_id, LoggedRequest.account_id == account_id
    )
    if after is not None:
        rows = rows.where(LoggedRequest.number > _place(work, account_id, after)[2])
    return _page(work, rows.order_by(LoggedRequest.number), limit)


def of_day(
    work: Work, account_id: str, day: Days, *, after: str | None, limit: int
) -> tuple[list[LoggedRequest], bool]:
    """Up to ``limit`` of the requests of an account's batches that ended that day, oldest first, after the given one."""
    place = (LoggedRequest.at, LoggedRequest.batch_id, LoggedRequest.number)
    rows = select(LoggedRequest).where(
        LoggedRequest.account_id == account_id, LoggedRequest.at >= day.begin, LoggedRequest.at < day.end
    )
    if after is not None:
        rows = rows.where(tuple_(*place) > _place(work, account_id, after))
    return _page(work, rows.order_by(*place), limit)


def forget(work: Work, *, days: int) -> int:
    """Delete rows of batches that ended longer ago than that, some in each transaction; how many."""
    before = work.now - timedelta(days=days)
    old = select(LoggedBatch.batch_id).where(LoggedBatch.at < before).order_by(LoggedBatch.at).limit(1)
    batch_id = work.session.scalar(old)
    if batch_id is None:
        return 0
    some = select(LoggedRequest.number).where(LoggedRequest.batch_id == batch_id).limit(FORGET_ROWS)
    gone = work.session.execute(
        delete(LoggedRequest)
        .where(LoggedRequest.batch_id == batch_id, LoggedRequest.number.in_(some))
        .returning(LoggedRequest.number)
    ).all()
    if len(gone) < FORGET_ROWS:
        # The mark goes last: a batch whose mark is gone is too old to be logged again.
        work.session.execute(delete(LoggedBatch).where(LoggedBatch.batch_id == batch_id))
    return max(1, len(gone))


def request_object(row: LoggedRequest) -> dict[str, Any]:
    """A request as the API shows it."""
    return {
        "id": request_id(row),
        "object": "gridline.request",
        "created_at": unix(row.at),
        "source": "batch",
        "batch_id": row.batch_id,
        "custom_id": row.custom_id,
        "model": row.model or None,
        "status_code": row.status_code,
        "code": row.code,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "cost": credits_text(row.cost_nanos),
    }


def request_id(row: LoggedRequest) -> str:
    """What a page goes on after."""
    return f"{row.batch_id}-{row.number}"


def _place(work: Work, account_id: str, after: str) -> tuple[Any, str, int]:
    batch_id, _, number = after.rpartition("-")
    known = re.fullmatch(r"[0-9]{1,9}", number)
    row = work.session.get(LoggedRequest, (batch_id, int(number))) if known else None
    if row is None or row.account_id != account_id:
        raise NotFound(f"There is no request {after!r} in the log to go on after.", param="after")
    return row.at, row.batch_id, row.number


def _page(work: Work, rows: Any, limit: int) -> tuple[list[LoggedRequest], bool]:
    found = list(work.session.scalars(rows.limit(limit + 1)))
    return found[:limit], len(found) > limit
