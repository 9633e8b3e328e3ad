"""An account's statement of some UTC days: opening and closing balance with every entry between, also as CSV."""

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from gridline.clock import Days
from gridline.db.work import Work
from gridline.errors import InvalidRequest
from gridline.ledger import entries
from gridline.ledger.entries import Movement
from gridline.ledger.reading import Balances
from gridline.limits import STATEMENT_ENTRIES_MAX
from gridline.money import credits_text

COLUMNS = (
    "at", "id", "kind", "amount", "available_change", "held_change", "available", "held", "batch_id", "actor", "why",
)  # fmt: skip
FORMULA_STARTS = "=+-@"


def statement_object(work: Work, account_id: str, days: Days) -> dict[str, Any]:
    """The statement as the API shows it.

    Raises:
        InvalidRequest: more entries than one answer holds.
    """
    opening = entries.balance_before(work, account_id, days.begin)
    moved = list(islice(entries.between(work, account_id, days.begin, days.end), STATEMENT_ENTRIES_MAX + 1))
    if len(moved) > STATEMENT_ENTRIES_MAX:
        raise InvalidRequest(
            f"These days have more than {STATEMENT_ENTRIES_MAX} entries, the most that a statement in JSON holds. "
            "Ask for fewer days, or for format=csv, which holds any number.",
            code="invalid_value",
            param="from",
        )
    closing = Balances(
        available_nanos=opening.available_nanos + sum(one.available_nanos for one in moved),
        held_nanos=opening.held_nanos + sum(one.held_nanos for one in moved),
    )
    return {
        "object": "gridline.statement",
        "from": days.first.isoformat(),
        "to": days.last.isoformat(),
        "opening": _shown(opening),
        "closing": _shown(closing),
        "data": [entries.entry_object(one) for one in moved],
    }


def csv_lines(work: Work, account_id: str, days: Days) -> Iterator[bytes]:
    """The statement as lines of RFC 4180, in flat memory: a head, the opening, every entry, the closing.

    ``available`` and ``held`` are the balances that a line left.
    """
    now = entries.balance_before(work, account_id, days.begin)
    yield _line(COLUMNS)
    yield _line([_moment(days.begin), "", "opening", "", "", "", *_texts(now), "", "", ""])
    for one in entries.between(work, account_id, days.begin, days.end):
        now = Balances(
            available_nanos=now.available_nanos + one.available_nanos,
            held_nanos=now.held_nanos + one.held_nanos,
        )
        yield _line(_entry(one, now))
    yield _line([_moment(days.end), "", "closing", "", "", "", *_texts(now), "", "", ""])


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula: one that could be has an apostrophe before it."""
    first = text.lstrip(" ")[:1]
    return f"'{text}" if first and (first in FORMULA_STARTS or not first.isprintable()) else text


def _shown(balances: Balances) -> dict[str, str]:
    return dict(zip(("available", "held"), _texts(balances), strict=True))


def _texts(balances: Balances) -> list[str]:
    return [credits_text(balances.available_nanos), credits_text(balances.held_nanos)]


def _entry(one: Movement, left: Balances) -> list[str]:
    # Amounts are ours and plain numbers, so they stay as they are: a guard would make texts of them.
    moved = (one.amount_nanos, one.available_nanos, one.held_nanos)
    return [
        _moment(one.at),
        one.id,
        one.kind,
        *map(credits_text, moved),
        *_texts(left),
        one.batch_id or "",
        guarded(one.who),
        guarded(one.why),
    ]


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _line(cells: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().encode()
