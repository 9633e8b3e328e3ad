"""What must hold of batches, files and leases at every committed state, each as one query that finds what breaks it.

Sentences hold ids, statuses and amounts, never a word of a customer. The books have their own (``ledger.proving``).
"""

BATCH_MONEY = (
    (
        "batch {} is {} and its hold is not resolved",
        """SELECT b.id, b.status FROM batches b JOIN holds h ON h.batch_id = b.id
        WHERE b.ended_at IS NOT NULL AND NOT EXISTS (SELECT FROM resolutions r WHERE r.batch_id = b.id)""",
    ),
    (
        "batch {} is {} and its hold is resolved already",
        """SELECT b.id, b.status FROM batches b JOIN resolutions r ON r.batch_id = b.id
        WHERE b.ended_at IS NULL""",
    ),
    (
        "batch {} is {} with {} results and was never settled",
        """SELECT b.id, b.status, b.completed + b.failed + b.cancelled FROM batches b
        WHERE b.ended_at IS NOT NULL AND b.status <> 'failed' AND b.completed + b.failed + b.cancelled > 0
            AND NOT EXISTS (SELECT FROM resolutions r WHERE r.batch_id = b.id)""",
    ),
    (
        "batch {} belongs to account {}, its hold to account {}",
        """SELECT b.id, b.account_id, h.account_id FROM batches b JOIN holds h ON h.batch_id = b.id
        WHERE h.account_id <> b.account_id""",
    ),
    (
        "transaction {} of batch {} is a second {}",
        """SELECT t.id, t.batch_id, t.kind FROM transactions t
        WHERE t.kind = 'hold' AND NOT EXISTS (SELECT FROM holds h WHERE h.transaction_id = t.id)
            OR t.kind = 'settle' AND NOT EXISTS (SELECT FROM resolutions r WHERE r.transaction_id = t.id)""",
    ),
    (
        "batch {} failed and was charged {} nano-credits",
        """SELECT b.id, r.charged_nanos + r.overrun_nanos FROM batches b JOIN resolutions r ON r.batch_id = b.id
        WHERE b.status = 'failed' AND r.charged_nanos + r.overrun_nanos <> 0""",
    ),
    (
        "batch {} was charged for {} lines, {} and {} tokens, and shows {} lines, {} and {} tokens",
        """SELECT b.id, r.lines, r.input_tokens, r.output_tokens, b.completed, b.input_tokens, b.output_tokens
        FROM batches b JOIN resolutions r ON r.batch_id = b.id
        WHERE b.ended_at IS NOT NULL AND (r.lines, r.input_tokens, r.output_tokens)
            <> (b.completed, b.input_tokens, b.output_tokens)""",
    ),
    (
        "batch {} was charged for {} lines, its usage facts have {}",
        """SELECT r.batch_id, r.lines, coalesce(sum(u.lines), 0)
        FROM resolutions r LEFT JOIN usage_facts u ON u.batch_id = r.batch_id
        GROUP BY r.batch_id, r.lines HAVING r.lines <> coalesce(sum(u.lines), 0)""",
    ),
)

BATCH_STATUS = (
    (
        "batch {} went from {} to {}, which no batch may",
        """SELECT batch_id, source, kind FROM (
            SELECT batch_id, kind, lag(kind, 1, 'validating') OVER (PARTITION BY batch_id ORDER BY sequence) AS source
            FROM batch_events WHERE kind = ANY(:statuses)
        ) moves WHERE source || ' ' || kind <> ALL(:edges)""",
    ),
    (
        "batch {} is {}, its last event says {}",
        """SELECT b.id, b.status, coalesce(last.kind, 'validating') FROM batches b LEFT JOIN (
            SELECT DISTINCT ON (batch_id) batch_id, kind FROM batch_events WHERE kind = ANY(:statuses)
            ORDER BY batch_id, sequence DESC
        ) last ON last.batch_id = b.id WHERE b.status <> coalesce(last.kind, 'validating')""",
    ),
    (
        "batch {} is completed and its file was never read",
        "SELECT id FROM batches WHERE status = 'completed' AND validated_at IS NULL",
    ),
    (
        "batch {} failed although a line ran",
        "SELECT id FROM batches WHERE status = 'failed' AND any_line_ran",
    ),
    (
        "batch {} is {}, and when it ended is another matter: {}",
        "SELECT id, status, ended_at FROM batches WHERE (status = ANY(:terminal)) <> (ended_at IS NOT NULL)",
    ),
    (
        "account {} counts {} open batches, its rows are {}",
        """SELECT a.id, a.open_batches, coalesce(open.rows, 0) FROM accounts a LEFT JOIN (
            SELECT account_id, count(*) AS rows FROM batches WHERE ended_at IS NULL GROUP BY 1
        ) open ON open.account_id = a.id WHERE a.open_batches <> coalesce(open.rows, 0)""",
    ),
)

BATCH_TIME = (
    (
        "batch {} of window {} expires {} seconds after it was created",
        """SELECT id, completion_window, extract(epoch FROM expires_at - created_at) FROM batches
        WHERE extract(epoch FROM expires_at - created_at)
            IS DISTINCT FROM (CAST(:windows AS jsonb) ->> completion_window)::numeric""",
    ),
    (
        "batch {} is {} without the time at which it became so",
        """SELECT id, status FROM batches WHERE status <> 'validating' AND CASE status
            WHEN 'in_progress' THEN in_progress_at WHEN 'finalizing' THEN finalizing_at
            WHEN 'completed' THEN completed_at WHEN 'failed' THEN failed_at WHEN 'expired' THEN expired_at
            WHEN 'cancelling' THEN cancelling_at WHEN 'cancelled' THEN cancelled_at END IS NULL""",
    ),
    (
        "batch {} has {} ends, and it may have one",
        """SELECT id, num_nonnulls(completed_at, failed_at, expired_at, cancelled_at) FROM batches
        WHERE num_nonnulls(completed_at, failed_at, expired_at, cancelled_at) <> num_nonnulls(ended_at)
            OR ended_at <> coalesce(completed_at, failed_at, expired_at, cancelled_at)""",
    ),
    (
        "batch {} has times that are out of order",
        """SELECT id FROM batches WHERE in_progress_at < created_at OR cancelling_at < created_at
            OR finalizing_at < coalesce(in_progress_at, created_at)
            OR ended_at < greatest(created_at, in_progress_at, finalizing_at, cancelling_at)""",
    ),
)

BATCH_FILES = (
    (
        "batch {} ended {} with {} requests, and {} of them became something",
        """SELECT id, status, total, completed + failed + cancelled FROM batches
        WHERE status IN ('completed', 'expired', 'cancelled') AND completed + failed + cancelled <> total""",
    ),
    (
        "batch {} has {} requests, its partitions {}",
        """SELECT b.id, b.total, sum(p.lines) FROM batches b JOIN partitions p ON p.batch_id = b.id
        GROUP BY b.id, b.total HAVING sum(p.lines) > b.total""",
    ),
    (
        "partition {} of batch {} has {} lines, and {} of them are done",
        """SELECT number, batch_id, lines, lines_done + lines_failed FROM partitions
        WHERE lines_done + lines_failed > lines""",
    ),
    (
        "batch {} is {} and shows a file",
        """SELECT id, status FROM batches WHERE (ended_at IS NULL OR status = 'failed')
            AND num_nonnulls(output_file_id, error_file_id) > 0""",
    ),
    (
        "batch {} is {} with {} lines done and {} not, and its files do not say so",
        """SELECT id, status, completed, failed + cancelled FROM batches
        WHERE status IN ('completed', 'expired', 'cancelled') AND
            ((completed > 0) <> (output_file_id IS NOT NULL) OR (failed + cancelled > 0) <> (error_file_id IS NOT NULL))""",
    ),
    (
        "batch {} shows file {}, which is not a result of it",
        """SELECT b.id, shown.id FROM batches b CROSS JOIN LATERAL (VALUES (b.output_file_id), (b.error_file_id)) shown (id)
        LEFT JOIN files f ON f.id = shown.id
        WHERE shown.id IS NOT NULL AND (f.batch_id, f.account_id, f.purpose)
            IS DISTINCT FROM (b.id, b.account_id, 'batch_output')""",
    ),
    (
        "file {} is a result that batch {} does not show",
        """SELECT f.id, f.batch_id FROM files f LEFT JOIN batches b ON b.id = f.batch_id
        WHERE f.purpose = 'batch_output' AND f.id IS DISTINCT FROM b.output_file_id
            AND f.id IS DISTINCT FROM b.error_file_id""",
    ),
    (
        "batch {} has not ended, and its input file {} is deleted",
        """SELECT b.id, f.id FROM batches b JOIN files f ON f.id = b.input_file_id
        WHERE b.ended_at IS NULL AND f.deleted_at IS NOT NULL""",
    ),
    (
        "account {} counts {} files of {} bytes, its rows are {} of {}",
        """SELECT a.id, a.files_count, a.files_bytes, coalesce(kept.rows, 0), coalesce(kept.bytes, 0)
        FROM accounts a LEFT JOIN (
            SELECT account_id, count(*) AS rows, sum(bytes) AS bytes FROM files WHERE deleted_at IS NULL GROUP BY 1
        ) kept ON kept.account_id = a.id
        WHERE (a.files_count, a.files_bytes) <> (coalesce(kept.rows, 0), coalesce(kept.bytes, 0))""",
    ),
)

LEASES = (
    (
        "lease {} of batch {} is not given back, and the batch has ended",
        """SELECT l.id, l.batch_id FROM leases l JOIN batches b ON b.id = l.batch_id
        WHERE l.released_at IS NULL AND b.ended_at < :settled""",
    ),
    (
        "lease {} and its attempt at partition {} of batch {} did not end together",
        """SELECT l.id, l.partition, l.batch_id FROM leases l JOIN attempts a ON a.lease_id = l.id
        WHERE (l.released_at IS NULL) <> (a.ended_at IS NULL)""",
    ),
    (
        "lease {} of batch {} is claimed without an attempt",
        """SELECT l.id, l.batch_id FROM leases l
        WHERE l.claimed_at IS NOT NULL AND NOT EXISTS (SELECT FROM attempts a WHERE a.lease_id = l.id)""",
    ),
    (
        "partition {} of batch {} is running without a lease",
        """SELECT p.number, p.batch_id FROM partitions p JOIN batches b ON b.id = p.batch_id
        WHERE p.state = 'running' AND b.ended_at IS NULL AND NOT EXISTS (
            SELECT FROM leases l WHERE l.batch_id = p.batch_id AND l.partition = p.number
                AND l.released_at IS NULL AND l.claimed_at IS NOT NULL)""",
    ),
)

GUARDS = (
    (
        "rows of {} can be changed by the role that everything runs as",
        """SELECT name FROM unnest(CAST(:append_only AS text[])) name
        WHERE has_table_privilege(name, 'UPDATE') OR has_table_privilege(name, 'DELETE')""",
    ),
    (
        "the database's own guard {} of the books is off",
        """SELECT name FROM unnest(CAST(:triggers AS text[])) name WHERE NOT EXISTS (
            SELECT FROM pg_trigger WHERE tgname = name AND tgenabled IN ('O', 'A'))""",
    ),
)

EVERY = (*BATCH_MONEY, *BATCH_STATUS, *BATCH_TIME, *BATCH_FILES, *LEASES, *GUARDS)
