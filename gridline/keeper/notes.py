"""Writes on a parked batch's ended run why it waits. For the operator's eyes; nothing depends on it."""

from datetime import datetime

from sqlalchemy import select

from gridline.batches.states import Waiting
from gridline.batches.tables import Batch
from gridline.db.work import unit_of_work
from gridline.keeper.airflow import Airflow
from gridline.keeper.dispatch import parked_note

PASS_MAX = 20


class Notes:
    """Remembers which wait it has noted; a keeper that starts again notes once more, which is harmless."""

    def __init__(self) -> None:
        self._noted: dict[str, tuple[str | None, datetime | None]] = {}

    def write(self, airflow: Airflow) -> int:
        """Note every parked wait that is not noted yet, some at a time; how many."""
        with unit_of_work() as work:
            parked = work.session.execute(
                select(Batch.id, Batch.reason_code, Batch.reason_since, Batch.operator_hold_note).where(
                    Batch.ended_at.is_(None), Batch.waiting == Waiting.PARKED
                )
            ).all()
        waits = {one.id: (one.reason_code, one.reason_since) for one in parked}
        self._noted = {one: wait for one, wait in self._noted.items() if waits.get(one) == wait}
        fresh = [one for one in parked if one.id not in self._noted][:PASS_MAX]
        for one in fresh:
            airflow.note(one.id, parked_note(one.id, one.reason_code, one.operator_hold_note))
            self._noted[one.id] = waits[one.id]
        return len(fresh)
