"""A small sound platform: a batch that completed, one that runs under a lease, one that failed, and a stranger."""

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from gridline.batches import cancelling, finishing
from gridline.batches.tables import Attempt, Batch
from gridline.capacity import allocator, attempts, pools
from gridline.customers import accounts
from gridline.db.work import unit_of_work
from gridline.files import receiving
from gridline.files.tables import File
from gridline.ledger.tables import Hold, Resolution, Transaction
from gridline.lines.segments import ResultRow, write_rows
from gridline.profiles.profile import load
from gridline.storage import layout
from gridline.storage.objects import Store
from tests.gridline.batches.bench import MODEL, Bench

TOKENS = (10, 2)
CHAT_NAMES = ("prompt_tokens", "completion_tokens")


@dataclass
class SoundBench(Bench):
    """A bench whose files are real, so that a proof finds what it should."""

    def file(self, *, account_id: str | None = None, purpose: str = "batch") -> str:
        """An uploaded file of three requests."""
        lines = [
            {"custom_id": f"c{number}", "method": "POST", "url": "/v1", "body": {}} for number in range(3)
        ]
        with receiving.receive(self.store, account_id or self.account_id, load("gridline")) as incoming:
            incoming.name("r.jsonl")
            incoming.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
            incoming.finish()
        return receiving.keep(self.store, incoming, expires_after_seconds=None).id

    def results(self, batch_id: str, *, delivered: int = 2, names: tuple[str, str] = CHAT_NAMES) -> None:
        """One closed segment of three lines: the first ones delivered, the others refused by the engine.

        ``names`` is how the endpoint's usage calls input and output.
        """
        usage = dict(zip(names, TOKENS, strict=True))
        rows = [
            ResultRow(
                line=line,
                custom_id=f"c{line}",
                status_code=200 if line < delivered else 400,
                request_id=f"req_{line}",
                body=json.dumps({"usage": usage} if line < delivered else {"error": {}}),
                code=None if line < delivered else "invalid_request",
                model=MODEL,
                input_tokens=TOKENS[0] if line < delivered else 0,
                output_tokens=TOKENS[1] if line < delivered else 0,
            )
            for line in range(3)
        ]
        prefix = layout.attempt_prefix(batch_id, 0, 1, f"l{batch_id}")
        self.store.put_once(layout.segment_key(prefix, 0), write_rows(rows))

    def completed(self, *, names: tuple[str, str] = CHAT_NAMES) -> str:
        """A batch that ran and ended: two lines delivered, one refused."""
        batch = self.held(lines=(3,))
        self.results(batch.id, names=names)
        self.claim(batch, 0, lease=f"l{batch.id}", state="done")
        finishing.finish(batch.id, run_over=False)
        return batch.id

    def running(self) -> str:
        """A batch whose one partition runs under a lease."""
        batch = self.held(lines=(3,))
        allocator.allocate()
        attempts.begin(batch.id, 0)
        return batch.id

    def failed(self) -> str:
        """A batch whose run was over before anything ran."""
        batch = self.held(lines=(3,))
        finishing.finish(batch.id, run_over=True)
        return batch.id

    def cancelled(self) -> str:
        """A batch that was cancelled before its file was read."""
        batch = self.create()
        with unit_of_work() as work:
            cancelling.cancel(work, account_id=self.account_id, batch_id=batch.id, actor="token:t")
        finishing.finish(batch.id, run_over=False)
        return batch.id

    def everything(self) -> None:
        """One batch of each kind, and an account that has none."""
        with unit_of_work() as work:
            pools.seed(work, '[{"name": "local", "gpus": 1, "models": ["*"], "datacenter": false}]')
            accounts.open_account(work, "stranger")
        self.completed()
        self.failed()
        self.cancelled()
        self.running()


def lasting(store: Store) -> dict[str, Any]:
    """All that a customer sees and pays: rows of files, money and batches, and the files' bytes."""
    with unit_of_work() as work:
        files = work.session.scalars(select(File).order_by(File.sequence)).all()
        batches = work.session.scalars(select(Batch).order_by(Batch.sequence)).all()
        attempts = select(Attempt.lease_id, Attempt.outcome, Attempt.ended_at).order_by(Attempt.lease_id)
        return {
            "files": [(one.id, one.bytes, one.sha256, store.read(one.object_key)) for one in files],
            "batches": [(one.id, one.status, one.completed, one.failed, one.ended_at) for one in batches],
            "attempts": [tuple(row) for row in work.session.execute(attempts)],
            "transactions": list(work.session.scalars(select(Transaction.id).order_by(Transaction.sequence))),
            "holds": len(work.session.scalars(select(Hold)).all()),
            "charges": [
                (one.batch_id, one.charged_nanos)
                for one in work.session.scalars(select(Resolution).order_by(Resolution.batch_id))
            ],
        }
