"""A thousand batches of five hundred accounts wait: those who need not wait do not notice, and neither does Airflow."""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from tests.stack import CHAT, EMBEDDING, Customer, Stack, chat_line, command_of, embedding_line, eventually

pytestmark = [pytest.mark.stack, pytest.mark.trial, pytest.mark.timeout(1200)]

SEEDED_ACCOUNTS = 490
REAL_ACCOUNTS = 10
BATCHES_EACH = 2
ROUNDS = 3
QUIET_SECONDS = 10
QUIET_ROUNDS = 5
SLOWER_MAX = 2
BUSIER_MAX = 1.2
START_SECONDS = 3

POOLS = (
    """UPDATE pools SET models = jsonb_build_array(%s::text) WHERE name = 'local' RETURNING name""",
    """INSERT INTO pools (name, gpus, models, datacenter) VALUES ('embeddings', 1, jsonb_build_array(%s::text), false)
    RETURNING name""",
)
SEED_ACCOUNTS = """
INSERT INTO accounts SELECT (jsonb_populate_record(a, jsonb_build_object(
    'id', 'account_seed' || lpad(n::text, 20, '0'), 'name', 'seed-' || n, 'open_batches', %s))).*
FROM accounts a, generate_series(1, %s) n WHERE a.id = %s RETURNING id
"""
SEED_FILES = """
INSERT INTO files (id, account_id, purpose, filename, bytes, sha256, object_key, created_at)
SELECT 'file-seed' || right(id, 20), id, 'batch', 'seed.jsonl', 1, '0', id, clock_timestamp()
FROM accounts WHERE name LIKE 'seed-%%' RETURNING id
"""
SEED_BATCHES = """
INSERT INTO batches SELECT (jsonb_populate_record(b, jsonb_build_object(
    'id', 'batch_seed' || n || right(a.id, 19), 'account_id', a.id, 'input_file_id', 'file-seed' || right(a.id, 20),
    'sequence', nextval(pg_get_serial_sequence('batches', 'sequence')), 'waiting', 'parked', 'status', 'in_progress',
    'in_progress_at', clock_timestamp(), 'reason_code', 'gridline_capacity', 'created_at', clock_timestamp(),
    'reason_since', clock_timestamp(), 'completed_at', null, 'finalizing_at', null, 'ended_at', null,
    'first_lease_at', null, 'any_line_ran', false, 'completed', 0, 'output_file_id', null))).*
FROM batches b, accounts a, generate_series(1, %s) n WHERE b.id = %s AND a.name LIKE 'seed-%%' RETURNING id
"""
SEED_HOLDS = """
INSERT INTO holds (batch_id, account_id, amount_nanos, at, card)
SELECT id, account_id, 0, clock_timestamp(), card FROM batches WHERE id LIKE 'batch_seed%%' RETURNING batch_id
"""
SEED_PARTITIONS = """
INSERT INTO partitions (batch_id, number, account_id, lines, tokens_estimate, state, attempts, lines_done, lines_failed)
SELECT id, 0, account_id, 1, 10, 'waiting', 0, 0, 0 FROM batches WHERE id LIKE 'batch_seed%%' RETURNING batch_id
"""
TAKE_THE_GPU = """
INSERT INTO leases (id, pool, account_id, batch_id, partition, granted_at, claimed_at, expires_at)
SELECT 'lease_seed', 'local', account_id, batch_id, 0, clock_timestamp(), clock_timestamp(),
    clock_timestamp() + interval '1 hour'
FROM partitions WHERE batch_id LIKE 'batch_seed%%' ORDER BY batch_id LIMIT 1 RETURNING id
"""
FREE_THE_GPU = """
WITH freed AS (
    UPDATE leases SET released_at = clock_timestamp(), outcome = 'stopped' WHERE id = 'lease_seed' RETURNING released_at
) SELECT released_at, pg_notify('gridline', 'capacity') FROM freed
"""
SEEDED = "batch_id LIKE 'batch_seed%%'"
TAKE_AWAY = (
    *(
        f"DELETE FROM {table} WHERE {SEEDED} RETURNING batch_id"
        for table in ("leases", "resolutions", "holds", "partitions", "run_requests", "batch_events")
    ),
    "DELETE FROM batches WHERE id LIKE 'batch_seed%%' RETURNING id",
    "DELETE FROM files WHERE id LIKE 'file-seed%%' RETURNING id",
    "DELETE FROM accounts WHERE name LIKE 'seed-%%' RETURNING id",
)


@pytest.fixture
def two_pools(stack: Stack) -> Iterator[None]:
    """One GPU for chat, another for embeddings."""
    for statement, model in zip(POOLS, (CHAT, EMBEDDING), strict=True):
        assert stack.rows(statement, model)
    yield
    stack.rows("""UPDATE pools SET models = '["*"]' WHERE name = 'local' RETURNING name""")
    stack.rows("UPDATE pools SET gpus = 0 WHERE name = 'embeddings' RETURNING name")


def seconds_of_a_batch(customer: Customer) -> float:
    """From create to completed, of one line that needs no GPU that anybody waits for; the median of some."""
    found = []
    for _ in range(ROUNDS):
        begun = time.monotonic()
        batch = customer.create([embedding_line(0, "ships")], endpoint="/v1/embeddings")
        until = begun + 120
        while customer.openai.batches.retrieve(batch.id).status != "completed":
            assert time.monotonic() < until, f"{batch.id} does not complete"
            time.sleep(0.05)
        found.append(time.monotonic() - begun)
    return statistics.median(found)


def scheduler_load(stack: Stack) -> float:
    """Seconds of CPU that the scheduler takes in a second while nothing is asked of it; the median of some."""
    (scheduler,) = [one for one in stack.processes() if command_of(one).endswith("airflow scheduler")]

    def used() -> float:
        found = 0.0
        for one in (scheduler, *scheduler.children(recursive=True)):
            # A process that ended meanwhile is counted by its parent.
            with suppress(psutil.NoSuchProcess):
                found += sum(one.cpu_times()[:4])
        return found

    loads = []
    for _ in range(QUIET_ROUNDS):
        before, begun = used(), time.monotonic()
        time.sleep(QUIET_SECONDS)  # the measurement
        loads.append((used() - before) / (time.monotonic() - begun))
    return statistics.median(loads)


@contextmanager
def thousand_waiting(stack: Stack, pattern: str, customer: Customer) -> Iterator[None]:
    """Rows as parking leaves them, made after the pattern of one real batch, with the one GPU for chat taken."""
    stack.rows(SEED_ACCOUNTS, BATCHES_EACH, SEEDED_ACCOUNTS, customer.id)
    stack.rows(SEED_FILES)
    seeded = stack.rows(SEED_BATCHES, BATCHES_EACH, pattern)
    assert len(seeded) == BATCHES_EACH * SEEDED_ACCOUNTS
    stack.rows(SEED_HOLDS)
    stack.rows(SEED_PARTITIONS)
    try:
        yield
    finally:
        for statement in TAKE_AWAY:
            stack.rows(statement)


def test_a_thousand_waiting_batches_slow_nobody_down(stack: Stack, two_pools: None) -> None:
    """A batch with a free GPU takes at most twice its time, the idle scheduler little more, a freed GPU finds its batch."""
    customer = stack.customer("thousand-free")
    seconds_of_a_batch(customer)  # the first one finds nothing warm
    alone, idle = seconds_of_a_batch(customer), scheduler_load(stack)

    first = stack.customer("thousand-0")
    blocker = first.create([chat_line(0, "Say yes.", tokens=4)])
    assert first.finished(blocker.id).status == "completed"
    with thousand_waiting(stack, blocker.id, first):
        assert stack.rows(TAKE_THE_GPU)
        others = [stack.customer(f"thousand-{number}") for number in range(1, REAL_ACCOUNTS)]
        real = [
            one.create([chat_line(0, "Say yes.", tokens=4)]).id
            for _ in range(BATCHES_EACH)
            for one in (first, *others)
        ]

        def all_wait() -> bool:
            found = stack.rows("SELECT id FROM batches WHERE id = ANY(%s) AND waiting IS NOT NULL", real)
            return len(found) == len(real)

        eventually(all_wait, seconds=300, what="all real ones wait")
        # The seeded ones came first in time; the oldest of all are the real ones. Of their accounts only the first had
        # a GPU before, for the blocker: so the second account's oldest is next.
        following = real[1]
        stack.rows(
            "UPDATE batches SET created_at = created_at - interval '1 hour', start_by = start_by - interval '1 hour', "
            "expires_at = expires_at - interval '1 hour' WHERE id = ANY(%s) RETURNING id",
            real,
        )
        beside, busy = seconds_of_a_batch(customer), scheduler_load(stack)
        ((freed_at, _),) = stack.rows(FREE_THE_GPU)

        def started() -> list[tuple[object, ...]]:
            return stack.rows(
                "SELECT batch_id, claimed_at FROM leases WHERE pool = 'local' AND claimed_at > %s ORDER BY fence LIMIT 1",
                freed_at,
            )

        ((batch_id, claimed_at),) = eventually(started, seconds=60, what="the freed GPU is taken", every=0.02)
    for one, number in zip((first, *others), range(REAL_ACCOUNTS), strict=True):
        for batch in (real[number], real[number + REAL_ACCOUNTS]):
            assert one.finished(batch, seconds=400).status == "completed"
    seconds = (claimed_at - freed_at).total_seconds()
    assert "The books hold" in stack.gridline("books")
    assert (batch_id, seconds < START_SECONDS) == (following, True), (batch_id, seconds, real)
    assert beside <= SLOWER_MAX * alone, (beside, alone)
    assert busy <= BUSIER_MAX * idle, (busy, idle)
