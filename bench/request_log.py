"""What the request log costs a large batch, and how fast it answers: `make bench-requests`.

Collates 50,000 lines beside the same without the log, in turns in one run; then copies ten such batches into the log of an
embedded PostgreSQL and reads pages of it by batch and by day.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

from sqlalchemy import Engine, create_engine, text

from bench import servers
from gridline import ids
from gridline.catalog.cards import catalogue
from gridline.clock import Days
from gridline.customers import accounts
from gridline.db.migrate import migrate
from gridline.db.work import Work, make_engine, unit_of_work
from gridline.lines import collating, request_rows
from gridline.lines.partitions import BatchOf, PartitionPlan, Spool, write_partitions
from gridline.lines.request_rows import RequestRow, RequestRows
from gridline.lines.sealing import seal
from gridline.lines.segments import ResultRow, write_rows
from gridline.lines.sizing import Accepted
from gridline.operate import postgres, provisioning
from gridline.storage import layout
from gridline.storage.objects import Store
from gridline.usage import request_log
from gridline.usage.tables import LoggedBatch

LINES = 50_000
SEGMENT_LINES = 100
PARTITIONS = 10
BATCHES = 10
ROUNDS = 5
PAGE = 1_000
MODEL = "smollm2-135m-instruct"
ACCOUNT = "acct_bench"
ADDED_AIM, QUERY_MS_AIM = 0.10, 100
BODY = json.dumps({"object": "chat.completion", "choices": [{"message": {"content": "word " * 60}}]})


class NoRows(RequestRows):
    """The same collating without a log."""

    def add(self, row: RequestRow) -> None:
        """Nothing."""


def lay(store: Store, batch_id: str) -> None:
    """A batch whose every line has run, sealed and not yet collated."""
    each = LINES // PARTITIONS
    with Spool() as spool:
        spool.add([Accepted(line, f"request-{line}", "{}", 1, 1, MODEL) for line in range(LINES)])
        plans = [PartitionPlan(number, each, each) for number in range(PARTITIONS)]
        write_partitions(store, spool, plans, BatchOf(batch_id, "/v1/chat/completions", catalogue()[MODEL]))
    for number in range(PARTITIONS):
        prefix = layout.attempt_prefix(batch_id, number, 0, "lease")
        first = number * each
        for segment in range(each // SEGMENT_LINES):
            lines = range(first + segment * SEGMENT_LINES, first + (segment + 1) * SEGMENT_LINES)
            rows = [ResultRow(n, f"request-{n}", 200, f"req-{n}", BODY, None, MODEL, 40, 60) for n in lines]
            store.put_once(layout.segment_key(prefix, segment), write_rows(rows))
        seal(store, batch_id, number, [(0, "lease")])


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    started = time.monotonic()
    call()
    return time.monotonic() - started


def collate(store: Store, batch_id: str, *, log: bool) -> None:
    """Collate anew, with or without what the log keeps."""
    for key in (layout.collation_key(batch_id), layout.requests_key(batch_id)):
        store.delete(key)
    with mock.patch.object(collating, "RequestRows", RequestRows if log else NoRows):
        collating.collate(
            store, batch_id=batch_id, account_id=ACCOUNT, partitions=range(PARTITIONS),
            output_key=layout.file_key(ACCOUNT, ids.new("file")), error_key=layout.file_key(ACCOUNT, "file-err"),
            missing=("batch_expired", "Too late."),
        )  # fmt: skip


def measure_collating(store: Store, batch_id: str) -> None:
    """Print what the log adds, as the median of rounds with and without it in turns."""
    found = [
        (
            seconds(lambda: collate(store, batch_id, log=False)),
            seconds(lambda: collate(store, batch_id, log=True)),
        )
        for _ in range(ROUNDS + 1)
    ][1:]
    without, with_ = (statistics.median(side) for side in zip(*found, strict=True))
    print(f"collating {LINES} lines: {without:.2f} s without the log, {with_:.2f} s with it")
    print(
        f"  added: {with_ / without - 1:.3f} of collating alone (aim: at most {ADDED_AIM} of the whole batch's time)"
    )


def measure_log(engine: Engine, data: bytes) -> None:
    """Print the copying of a batch into a log that has others, and the slowest of some pages of it."""
    at = datetime(2026, 1, 5, 12, tzinfo=UTC)
    card = catalogue()[MODEL].copy()
    with unit_of_work(engine=engine) as work:
        account_id = accounts.open_account(work, "bench", actor="bench").id
        work.session.execute(
            text("ALTER TABLE logged_batches DROP CONSTRAINT fk_logged_batches_batch_id_batches")
        )
    copying, batches = [], [ids.new("batch") for _ in range(BATCHES)]
    for batch_id in batches:

        def copy(batch_id: str = batch_id) -> None:
            with unit_of_work(engine=engine) as work:
                logged = LoggedBatch(batch_id=batch_id, account_id=account_id, at=at)
                request_log.record(work, logged, card, request_rows.read(data))

        copying.append(seconds(copy))
    print(f"copying a batch of {LINES} into the log: {statistics.median(copying):.2f} s, after its end")

    def page(read: Callable[[Work], object]) -> float:
        with unit_of_work(engine=engine) as work:
            return seconds(lambda: read(work))

    middle = f"{batches[5]}-{LINES // 2}"
    asked: dict[str, Callable[[Work], object]] = {
        "by batch": lambda work: request_log.of_batch(work, account_id, batches[5], after=middle, limit=PAGE),
        "by day": lambda work: request_log.of_day(work, account_id, Days.of(at), after=middle, limit=PAGE),
    }
    for name, read in asked.items():
        taken = statistics.median([page(read) for _ in range(ROUNDS + 1)][1:]) * 1000
        print(
            f"a page of {PAGE} of {BATCHES * LINES} requests {name}: {taken:.0f} ms (aim: under {QUERY_MS_AIM})"
        )


def main() -> int:
    """Measure both and print."""
    with servers.new_folder() as folder:
        store, batch_id = Store(Path(folder, "objects").as_uri()), ids.new("batch")
        lay(store, batch_id)
        measure_collating(store, batch_id)
        cluster = postgres.Postgres(folder / "postgres", servers.free_port(), folder / "secrets")
        child = cluster.start()
        try:
            provisioning.provision_embedded(cluster)
            owner = create_engine(cluster.url(postgres.OWNER, "gridline"))
            with owner.begin() as migrating:
                migrate(migrating)
            owner.dispose()
            engine = make_engine(cluster.url(postgres.OWNER, "gridline"))
            measure_log(engine, store.read(layout.requests_key(batch_id)))
            engine.dispose()
        finally:
            postgres.stop(child)
    return 0


if __name__ == "__main__":
    sys.exit(main())
