"""What the tests of batches make them with: the code that makes them in production."""

import io
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from gridline import ids
from gridline.batches import intake, moves
from gridline.batches.intake import Created
from gridline.batches.repeats import Sent
from gridline.batches.requests import CreateRequest
from gridline.batches.states import Status
from gridline.batches.tables import Attempt, Batch, Partition
from gridline.catalog import cards
from gridline.clock import FrozenClock
from gridline.db.work import unit_of_work
from gridline.files.tables import File
from gridline.ledger import holding
from gridline.lines.segments import ResultRow, write_rows
from gridline.storage import layout
from gridline.storage.objects import Store

MODEL = "smollm2-135m-instruct"
CREDIT = 10**9


@dataclass
class Bench:
    """What a test makes batches with."""

    clock: FrozenClock
    store: Store
    account_id: str

    def file(self, *, account_id: str | None = None, purpose: str = "batch") -> str:
        """An input file's row (its object is not read by these tests)."""
        with unit_of_work() as work:
            file_id = ids.new("file")
            owner = account_id or self.account_id
            work.session.add(
                File(
                    id=file_id, account_id=owner, purpose=purpose, filename="r.jsonl", bytes=1, sha256="0",
                    object_key=layout.file_key(owner, file_id), created_at=work.now,
                )
            )  # fmt: skip
        return file_id

    def create(self, *, window: str = "24h", key: str | None = None, file_id: str | None = None) -> Batch:
        """A batch as a create call makes it."""
        wanted = CreateRequest(file_id or self.file(), "/v1/chat/completions", window, {"a": "b"}, None)
        return self.sent(wanted, Sent(key=key)).batch

    def sent(self, request: CreateRequest, sent: Sent) -> Created:
        """What a create call that arrived this way gets."""
        with unit_of_work() as work:
            return intake.create(
                work, account_id=self.account_id, actor="token:test", request=request, sent=sent
            )

    def held(self, *, lines: tuple[int, ...] = (2,), window: str = "24h") -> Batch:
        """A batch after ``validate`` and ``hold_credits``: one partition for each number of lines."""
        batch = self.create(window=window)
        card = cards.catalogue()[MODEL]
        with unit_of_work() as work:
            batch = moves.locked(work, batch.id)
            batch.validated_at = work.now
            batch.model, batch.card, batch.total = card.id, card.copy(), sum(lines)
            batch.ceiling_nanos = CREDIT
            for number, count in enumerate(lines):
                work.session.add(
                    Partition(
                        batch_id=batch.id, number=number, account_id=batch.account_id, lines=count,
                        tokens_estimate=count, state="waiting",
                    )
                )  # fmt: skip
            holding.place(
                work, batch_id=batch.id, account_id=batch.account_id, amount_nanos=CREDIT, card=batch.card
            )
        self._write_lines(batch.id, lines)
        return batch

    def claim(
        self, batch: Batch, number: int, *, lease: str, attempt: int = 1, state: str = "running"
    ) -> None:
        """An attempt at a partition that got its lease."""
        with unit_of_work() as work:
            locked = moves.locked(work, batch.id)
            work.session.get_one(Partition, (batch.id, number)).state = state
            work.session.add(
                Attempt(
                    batch_id=batch.id, partition=number, number=attempt, lease_id=lease, started_at=work.now
                )
            )
            if locked.status == Status.VALIDATING:
                moves.move(work, locked, Status.IN_PROGRESS)

    def segment(
        self, batch: Batch, number: int, lines: list[int], *, lease: str, attempt: int = 1, place: int = 1
    ) -> None:
        """A closed segment of delivered lines, ten tokens in and two out each; ``place`` counts the attempt's."""
        rows = [
            ResultRow(line, f"c{line}", 200, f"req_{line}", f'{{"line":{line}}}', None, MODEL, 10, 2)
            for line in lines
        ]
        prefix = layout.attempt_prefix(batch.id, number, attempt, lease)
        self.store.put_once(layout.segment_key(prefix, place), write_rows(rows))

    def _write_lines(self, batch_id: str, counts: tuple[int, ...]) -> None:
        first = 0
        for number, count in enumerate(counts):
            lines = range(first, first + count)
            table = pa.table(
                {
                    "line": pa.array(lines, pa.int64()),
                    "custom_id": [f"c{line}" for line in lines],
                    "body": [f'{{"model":"{MODEL}"}}' for _ in lines],
                    "input_tokens": pa.array([10] * count, pa.int64()),
                }
            ).replace_schema_metadata({b"format": b"1"})
            sink = io.BytesIO()
            pq.write_table(table, sink)
            self.store.put_once(layout.partition_lines_key(batch_id, number), sink.getvalue())
            first += count
