"""What the tests of capacity work on: a pool, accounts, held batches, and looks at the rows they leave."""

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from gridline.batches import moves
from gridline.batches.states import Status
from gridline.batches.tables import Attempt, Batch, Partition, RunRequest
from gridline.capacity import attempts, pools
from gridline.capacity.tables import Lease
from gridline.clock import FrozenClock
from gridline.db.work import unit_of_work
from gridline.ledger.holding import place
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.storage import layout
from gridline.storage.objects import Store
from tests.gridline.ledger import bench

BATCH_NANOS = 1000


@dataclass
class Yard:
    """One pool named ``local`` and whoever wants its GPUs."""

    clock: FrozenClock
    store: Store

    def gpus(self, count: int) -> None:
        """Set the pool's size."""
        with unit_of_work() as work:
            pool = {"name": "local", "gpus": count, "models": ["*"], "datacenter": False}
            pools.seed(work, json.dumps([pool]))

    def seconds(self) -> float:
        """A monotonic clock that goes as the frozen one does."""
        return self.clock.moment.timestamp()

    def account(self, name: str, *, leases_max: int = 4) -> str:
        """An account with plenty of credit."""
        with unit_of_work() as work:
            return bench.account(work, name, credit_nanos=10**12, leases_max=leases_max).id

    def batch(
        self,
        account_id: str,
        *,
        partitions: int = 1,
        waiting: str | None = None,
        held: bool = True,
        window: str = "24h",
    ) -> str:
        """A batch after ``validate`` and ``hold_credits``, waiting in its way."""
        with unit_of_work() as work:
            made = bench.batch(work, account_id, partitions=partitions, window=window)
            made.waiting = waiting
            if held:
                place(
                    work, batch_id=made.id, account_id=account_id, amount_nanos=BATCH_NANOS, card=bench.CARD
                )
            return made.id

    def row(self, batch_id: str) -> Batch:
        """The batch as it is committed."""
        with unit_of_work() as work:
            return work.session.get_one(Batch, batch_id)

    def change(self, batch_id: str, **values: Any) -> None:
        """Set columns of a batch."""
        with unit_of_work() as work:
            row = moves.locked(work, batch_id)
            for name, value in values.items():
                setattr(row, name, value)

    def cancel(self, batch_id: str) -> None:
        """Move a batch to cancelling."""
        with unit_of_work() as work:
            moves.move(work, moves.locked(work, batch_id), Status.CANCELLING)

    def leases(self, *, live: bool = False) -> list[Lease]:
        """Every lease, or the live ones, in the order of their fences."""
        with unit_of_work() as work:
            found = work.session.scalars(select(Lease).order_by(Lease.fence)).all()
        return [one for one in found if one.released_at is None or not live]

    def partition(self, batch_id: str, number: int = 0) -> Partition:
        """A partition as it is committed."""
        with unit_of_work() as work:
            return work.session.get_one(Partition, (batch_id, number))

    def attempts(self) -> list[Attempt]:
        """Every attempt, oldest first."""
        with unit_of_work() as work:
            return list(work.session.scalars(select(Attempt).order_by(Attempt.number)))

    def resumes(self) -> list[RunRequest]:
        """What the keeper is asked to do, in order."""
        with unit_of_work() as work:
            return list(work.session.scalars(select(RunRequest).order_by(RunRequest.sequence)))

    def begin(self, batch_id: str, number: int = 0) -> JobOrder:
        """Claim a grant that must be there."""
        order = attempts.begin(batch_id, number)
        assert isinstance(order, JobOrder)
        return order

    def end(self, batch_id: str, order: JobOrder, job_exit: JobExit | None, *, number: int = 0) -> str:
        """End the attempt of an order."""
        return attempts.end(batch_id, number, lease_id(order), job_exit)

    def progress(
        self, order: JobOrder, *, done: int = 0, failed: int = 0, healthy: bool = True, sequence: int = 1,
        deaths: int = 0,
    ) -> None:  # fmt: skip
        """Write the progress object as the job does."""
        stated = {
            "format": 1, "state": "running", "done": done, "failed": failed, "lines": 10, "sequence": sequence,
            "engine_healthy": healthy, "engine_version": "0.32.0", "runner_version": "1",
            "engine_deaths": deaths,
        }  # fmt: skip
        self.store.replace(layout.progress_key(order.attempt_prefix), json.dumps(stated).encode())


def lease_id(order: JobOrder) -> str:
    """The lease in an order's prefix."""
    return order.attempt_prefix.rstrip("/").rpartition("/")[2].partition("-")[2]
