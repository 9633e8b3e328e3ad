"""The proof of a platform that has run for a while: it is asked every hour, beside everything else."""

import time

import pytest
from sqlalchemy import Engine

from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.db.work import unit_of_work
from gridline.ledger import posting, proving
from gridline.operate import postgres
from gridline.proof import rows

BATCHES = 100_000
SECONDS_MAX = 30
"""All questions together, on two cores that do other things too; each must stay far below the statement's time-out."""

# One settled batch per number: a line of 2 and 1 tokens at 10 and 20 nano-credits, of 100 held.
SQL = """
SET LOCAL session_replication_role = replica;
CREATE TEMP TABLE made ON COMMIT DROP AS SELECT n, 'batch_' || n AS batch, '{account}' AS account,
    timestamptz '2026-01-05 12:00Z' AS at FROM generate_series(1, {count}) n;
INSERT INTO files (id, account_id, purpose, filename, bytes, sha256, object_key, created_at, batch_id)
    SELECT 'file-i' || n, account, 'batch', 'r.jsonl', 1, '0', 'x', at, NULL FROM made
    UNION ALL SELECT 'file-o' || n, account, 'batch_output', 'o.jsonl', 1, '0', 'x', at, batch FROM made;
INSERT INTO batches (id, account_id, created_by, endpoint, input_file_id, completion_window, status, created_at,
        start_by, expires_at, in_progress_at, finalizing_at, completed_at, ended_at, validated_at, errors_total, total,
        completed, failed, cancelled, input_tokens, output_tokens, output_file_id, any_line_ran, parked_after)
    SELECT batch, account, 'token', '/v1/chat/completions', 'file-i' || n, '24h', 'completed', at, at + interval '12 h',
        at + interval '24 h', at, at, at, at, at, 0, 1, 1, 0, 0, 2, 1, 'file-o' || n, true, 0 FROM made;
INSERT INTO batch_events (batch_id, account_id, at, kind, actor, details)
    SELECT batch, account, at, kind, 'keeper', '{{}}' FROM made CROSS JOIN unnest(
        ARRAY['created', 'waiting', 'validated', 'held', 'in_progress', 'started', 'finalizing', 'completed']
    ) WITH ORDINALITY kinds (kind, place) ORDER BY n, place;
INSERT INTO transactions (id, account_id, kind, batch_id, at, actor, why)
    SELECT 'h' || n, account, 'hold', batch, at, 'x', 'x' FROM made
    UNION ALL SELECT 's' || n, account, 'settle', batch, at, 'x', 'x' FROM made;
INSERT INTO entries (transaction_id, book, amount_nanos)
    SELECT kind || n, CASE WHEN book LIKE 'platform%' THEN book ELSE account || book END, amount
    FROM made CROSS JOIN (VALUES ('h', ':available', -100), ('h', ':held', 100), ('s', ':held', -100),
        ('s', ':available', 60), ('s', 'platform:revenue:00', 40)) legs (kind, book, amount);
INSERT INTO holds (batch_id, account_id, amount_nanos, transaction_id, at, card)
    SELECT batch, account, 100, 'h' || n, at,
        '{{"kind": "chat", "input_price_nanos": 10, "output_price_nanos": 20}}' FROM made;
INSERT INTO resolutions (batch_id, account_id, charged_nanos, returned_nanos, overrun_nanos, lines, input_tokens,
        output_tokens, transaction_id, at)
    SELECT batch, account, 40, 60, 0, 1, 2, 1, 's' || n, at FROM made;
INSERT INTO usage_facts (batch_id, model, account_id, day, lines, input_tokens, output_tokens, amount_nanos)
    SELECT batch, 'm', account, '2026-01-05', 1, 2, 1, 40 FROM made;
INSERT INTO partitions (batch_id, number, account_id, lines, tokens_estimate, state, attempts, lines_done, lines_failed)
    SELECT batch, 0, account, 1, 3, 'done', 0, 1, 0 FROM made;
INSERT INTO attempts (batch_id, partition, number, lease_id, started_at, ended_at, outcome, engine_healthy)
    SELECT batch, 0, 1, 'lease_' || n, at, at, 'done', true FROM made;
INSERT INTO leases (id, pool, account_id, batch_id, partition, granted_at, claimed_at, expires_at, released_at, outcome)
    SELECT 'lease_' || n, 'local', account, batch, 0, at, at, at, at, 'done' FROM made;
UPDATE balances SET balance_nanos = balance_nanos - 40 * {count} WHERE book = '{account}:available';
UPDATE balances SET balance_nanos = 40 * {count} WHERE book = 'platform:revenue:00';
UPDATE accounts SET files_count = 2 * {count}, files_bytes = 2 * {count};
"""


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_hundred_thousand_batches_are_proven_in_seconds(
    server: postgres.Postgres, database: Engine, clock: FrozenClock
) -> None:
    """Every promise about 10^5 ended batches and all that belongs to them holds, and asking takes seconds."""
    with unit_of_work() as work:
        account = accounts.open_account(work, "tester").id
        posting.grant(work, account, 10**9, actor="operator", why="test", key="first")
    with server.connect(str(database.url.database)) as superuser, superuser.transaction():
        superuser.execute(SQL.format(account=account, count=BATCHES))
    with server.connect(str(database.url.database)) as superuser:
        superuser.execute("ANALYZE")
    try:
        start = time.monotonic()
        with unit_of_work() as work:
            broken = rows.prove(work) + proving.prove(work)
        seconds = time.monotonic() - start
    finally:
        with server.connect(str(database.url.database)) as superuser:
            # Row by row, as after other tests, it would take minutes.
            superuser.execute("TRUNCATE accounts, pools CASCADE")
    assert broken == []
    assert seconds < SECONDS_MAX
