"""Looks at a simulated world from outside: whether every promise holds in what is committed at this moment."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import dict_row
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from gridline.batches.states import EDGES, TERMINAL, Status
from gridline.clock import Clock
from gridline.db.work import Work
from gridline.ledger import proving
from gridline.storage import layout
from tests.simulation.creates import Input
from tests.simulation.faults import Objects
from tests.simulation.history import Violation
from tests.simulation.jobs import Written

SLACK = timedelta(seconds=30)
"""The clock may step back by less than this between a decision and its transaction."""

AFTER_THE_END = ("batch_metadata", "objects_deleted_at")
"""What may change of a batch that has ended: a mark of the simulation, and that its retention is over."""

_OF_ROWS = {
    "entries that do not sum to zero": "SELECT 1 FROM entries HAVING coalesce(sum(amount_nanos), 0) <> 0",
    "books below zero": "SELECT 1 FROM balances WHERE account_id IS NOT NULL AND balance_nanos < 0",
    "accounts whose open slots are not their open batches": """SELECT 1 FROM accounts a WHERE open_batches <>
        (SELECT count(*) FROM batches b WHERE b.account_id = a.id AND ended_at IS NULL)""",
    "accounts over their limit of open batches": "SELECT 1 FROM accounts WHERE open_batches > open_batches_max",
    "accounts that hold another amount than their open holds": """SELECT 1 FROM accounts a WHERE
        (SELECT balance_nanos FROM balances WHERE book = a.id || ':held') <> (SELECT coalesce(sum(h.amount_nanos), 0)
            FROM holds h LEFT JOIN resolutions r USING (batch_id) WHERE h.account_id = a.id AND r.batch_id IS NULL)""",
    "batches that moved money twice in one way": """SELECT 1 FROM transactions WHERE batch_id IS NOT NULL
        GROUP BY batch_id, kind HAVING count(*) > 1""",
    "batches that have ended with an open hold": """SELECT 1 FROM batches b JOIN holds h ON h.batch_id = b.id
        LEFT JOIN resolutions r ON r.batch_id = b.id WHERE b.ended_at IS NOT NULL AND r.batch_id IS NULL""",
    "batches that are charged before they end": """SELECT 1 FROM resolutions r JOIN batches b ON b.id = r.batch_id
        WHERE b.ended_at IS NULL""",
    "charges beyond what was held": "SELECT 1 FROM resolutions WHERE overrun_nanos <> 0",
    "pools with more leases than GPUs": """SELECT 1 FROM pools p WHERE gpus <
        (SELECT count(*) FROM leases l WHERE l.pool = p.name AND l.released_at IS NULL)""",
    "accounts with more leases than they may have": """SELECT 1 FROM accounts a WHERE leases_max <
        (SELECT count(*) FROM leases l WHERE l.account_id = a.id AND l.released_at IS NULL)""",
    "leases of batches that never held credit": """SELECT 1 FROM leases l LEFT JOIN holds h USING (batch_id)
        WHERE h.batch_id IS NULL""",
    "accounts whose files are counted wrongly": """SELECT 1 FROM accounts a WHERE (files_count, files_bytes) <>
        (SELECT count(*), coalesce(sum(bytes), 0) FROM files f WHERE f.account_id = a.id AND deleted_at IS NULL)""",
    "result files of batches that have not ended": """SELECT 1 FROM files f JOIN batches b ON b.id = f.batch_id
        WHERE b.ended_at IS NULL""",
    "ends without their transaction's other half": """SELECT 1 FROM batches WHERE (ended_at IS NOT NULL) <>
        (status IN ('completed', 'failed', 'expired', 'cancelled'))""",
}  # fmt: skip
_ROWS = "SELECT " + ", ".join(f"EXISTS ({query})" for query in _OF_ROWS.values())
_STAMPS = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled", "ended")

Row = dict[str, Any]


@dataclass
class Looks:
    """Knows what it saw last, since some promises are about what must never change again."""

    owner: Engine
    objects: Objects
    inputs: dict[str, Input]
    clock: Clock
    at_work: Callable[[str], bool]
    """Whether the job of this lease still runs."""
    written: Written
    """What engines ever answered."""
    harmed: set[str] = field(default_factory=set)
    """Batches whose run an operator or Airflow ended before its time: those may end failed."""
    _seen: dict[str, Row] = field(default_factory=dict)
    _released: set[str] = field(default_factory=set)
    _started: datetime | None = None

    def __post_init__(self) -> None:
        pooled = self.owner.raw_connection()
        connection = pooled.driver_connection
        pooled.detach()
        if not isinstance(connection, psycopg.Connection):
            raise TypeError(type(connection))
        self._connection: psycopg.Connection[Any] = connection
        self._connection.autocommit = True

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    def rows(self, query: str) -> list[Row]:
        """What is committed now."""
        return list(self._connection.cursor(row_factory=dict_row).execute(query.encode()))

    def batches(self) -> list[Row]:
        """Every batch, oldest first."""
        return self.rows("SELECT * FROM batches ORDER BY sequence")

    def open_slots(self) -> dict[str, int]:
        """Open batches by account, counted."""
        query = """SELECT a.id, count(b.id) AS open FROM accounts a
            LEFT JOIN batches b ON b.account_id = a.id AND b.ended_at IS NULL GROUP BY a.id"""
        return {row["id"]: row["open"] for row in self.rows(query)}

    def quick(self, step_began: datetime) -> None:
        """What can be told from few rows; after every step."""
        self._started = step_began
        (found,) = self._connection.cursor().execute(_ROWS.encode())
        broken = [name for name, wrong in zip(_OF_ROWS, found, strict=True) if wrong]
        if broken:
            raise Violation(f"There are {' and '.join(broken)}.")
        for row in self.batches():
            before = self._seen.get(row["id"])
            if before is not None and before != row:
                self._compare(before, row)
            if before is None or before["ended_at"] != row["ended_at"]:
                self._judge_end(row)
            self._seen[row["id"]] = row
        self._look_at_leases()

    def _look_at_leases(self) -> None:
        """A lease that its job's end gave back, and not the clock, was given back by the end of its own job."""
        query = "SELECT id FROM leases WHERE outcome NOT IN ('expired', 'unclaimed', 'unwanted')"
        for row in self.rows(query):
            if row["id"] not in self._released and self.at_work(row["id"]):
                raise Violation(f"Lease {row['id']} was given back while its job runs.")
            self._released.add(row["id"])

    def thorough(self) -> None:
        """The books proved from their rows, and every file that is shown against its object."""
        with Session(self.owner) as session:
            broken = proving.prove(Work(session, self.clock))
        if broken:
            raise Violation("; ".join(broken))
        for file in self.rows("SELECT * FROM files WHERE deleted_at IS NULL"):
            content = self.objects.data.get(file["object_key"])
            if content is None or len(content) != file["bytes"]:
                raise Violation(
                    f"File {file['id']} of {file['bytes']} bytes is shown, and its object is not it."
                )

    def _compare(self, before: Row, row: Row) -> None:
        name, source = row["id"], Status(before["status"])
        later = dict.fromkeys(AFTER_THE_END)
        if source in TERMINAL and {**before, **later} != {**row, **later}:
            changed = [key for key in row if row[key] != before[key]]
            raise Violation(f"Batch {name} had ended {source}, and then {changed} changed.")
        if row["status"] not in _reachable(source):
            raise Violation(f"Batch {name} went from {source} to {row['status']}.")
        for stamp in _STAMPS:
            if before[f"{stamp}_at"] not in (None, row[f"{stamp}_at"]):
                raise Violation(f"Batch {name}: {stamp}_at was set twice.")
        self._compare_counts(before, row)
        if before["any_line_ran"] and not row["any_line_ran"]:
            raise Violation(f"Batch {name}: its lines had run, and now none has.")

    def _compare_counts(self, before: Row, row: Row) -> None:
        """Lines that are done stay done. A failed batch ran nothing, so its counts say nothing."""
        name = row["id"]
        if row["status"] == Status.FAILED:
            return
        if row["completed"] + row["failed"] < before["completed"] + before["failed"]:
            raise Violation(f"Batch {name}: lines that were done are not any more.")
        # Of a line that a machine answered which stood still, beside its successor, the lower attempt's answer counts.
        twice = sum(len(bodies) > 1 for (batch, _), bodies in self.written.items() if batch == name)
        for count, slack in (("completed", twice), ("failed", twice), ("cancelled", 0)):
            if row[count] < before[count] - slack:
                raise Violation(f"Batch {name}: {count} went back from {before[count]} to {row[count]}.")

    def _judge_end(self, row: Row) -> None:
        """Whether a batch may end as it does now."""
        name, status = row["id"], row["status"]
        if status == Status.EXPIRED and row["expired_at"] < row["expires_at"] - SLACK:
            raise Violation(f"Batch {name} expired before its time.")
        if status == Status.CANCELLED and row["cancelling_at"] is None:
            raise Violation(f"Batch {name} was cancelled and nobody had asked for it.")
        if status == Status.COMPLETED and self.inputs[row["input_file_id"]].bad:
            raise Violation(f"Batch {name} completed with a bad line.")
        if status == Status.FAILED:
            self._judge_failure(row)

    def _judge_failure(self, row: Row) -> None:
        name, code = row["id"], row["error_code"]
        early = row["failed_at"] < row["start_by"] - SLACK
        waits = row["completion_window"] == "72h"
        if code == "capacity_unavailable" and early:
            raise Violation(f"Batch {name} failed {code} before its start bound.")
        if code == "insufficient_quota" and waits and early:
            raise Violation(f"Batch {name} failed {code} though it may wait for credit.")
        if code == "invalid_request" and not self.inputs[row["input_file_id"]].bad:
            raise Violation(f"Batch {name} failed {code} and its file is good.")
        if code == "server_error" and name not in self.harmed and self.partition_states(name) != {"given_up"}:
            raise Violation(f"Batch {name} failed {code} and nobody had ended its run.")
        ran = [key for key in self.objects.written if self._counted(name, key)]
        if ran:
            raise Violation(f"Batch {name} failed {code} though lines of it had run: {ran}.")

    def _counted(self, batch_id: str, key: str) -> bool:
        """Whether this is a segment that stood before the step that failed its batch, and before its seal."""
        if not key.startswith(layout.batch_prefix(batch_id)) or not layout.is_segment(key):
            return False
        at = self.objects.written[key]
        sealed = self.objects.written.get(key.partition("attempts/")[0] + "manifest.json")
        return self._started is not None and at < self._started and (sealed is None or at < sealed)

    def partition_states(self, batch_id: str) -> set[str]:
        """States of the batch's partitions."""
        found = self.rows(f"SELECT state FROM partitions WHERE batch_id = '{batch_id}'")
        return {row["state"] for row in found}


def _reachable(source: Status) -> set[str]:
    """Statuses that legal edges lead to; several may be taken between two looks."""
    found, new = {source}, {source}
    while new:
        new = {to for one in new for to in EDGES[one]} - found
        found |= new
    return {str(one) for one in found}
