"""Proves the rows: asks each promise of ``promises`` of the database, which then names what breaks it."""

import json
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from gridline.batches.states import EDGES, TERMINAL, Status
from gridline.db.work import Work
from gridline.limits import WINDOW_SECONDS
from gridline.proof.promises import EVERY

NAMED_MAX = 100
"""Rows named for each promise: what breaks it for more is one fault, and its sentences would fill the log."""
LEASE_LEFT_SECONDS = 300
"""An ended batch's lease is given back by its job, or lapses, well within this time."""

_APPEND_ONLY = ("audit", "batch_events", "entries", "holds", "qualifications", "resolutions", "transactions")
_TRIGGERS = ("add_entry_to_balance", "ck_transactions_balance")


def prove(work: Work) -> list[str]:
    """A sentence for each row that breaks a promise; an empty list means that all hold."""
    values = _values(work)
    broken = []
    for sentence, query in EVERY:
        rows = work.session.execute(text(query), values).fetchmany(NAMED_MAX)
        broken += [sentence.format(*row) for row in rows]
    return broken


def _values(work: Work) -> dict[str, Any]:
    return {
        "statuses": [str(one) for one in Status],
        "terminal": [str(one) for one in TERMINAL],
        "edges": [f"{source} {to}" for source, targets in EDGES.items() for to in targets],
        "windows": json.dumps(WINDOW_SECONDS),
        "settled": work.now - timedelta(seconds=LEASE_LEFT_SECONDS),
        "append_only": list(_APPEND_ONLY),
        "triggers": list(_TRIGGERS),
    }
