"""The tables of every room."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table('accounts',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('open_batches', sa.BigInteger(), nullable=False),
    sa.Column('open_batches_max', sa.BigInteger(), nullable=False),
    sa.Column('leases_max', sa.BigInteger(), nullable=False),
    sa.Column('daily_credits_nanos_max', sa.BigInteger(), nullable=False),
    sa.Column('datacenter_only', sa.Boolean(), nullable=False),
    sa.Column('files_count', sa.BigInteger(), nullable=False),
    sa.Column('files_bytes', sa.BigInteger(), nullable=False),
    sa.CheckConstraint('files_count >= 0 AND files_bytes >= 0', name=op.f('ck_accounts_files_not_negative')),
    sa.CheckConstraint('open_batches >= 0', name=op.f('ck_accounts_open_batches_not_negative')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_accounts')),
    sa.UniqueConstraint('name', name=op.f('uq_accounts_name'))
    )
    op.create_table('audit',
    sa.Column('sequence', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=True),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('actor', sa.Text(), nullable=False),
    sa.Column('action', sa.Text(), nullable=False),
    sa.Column('details', postgresql.JSONB(), nullable=False),
    sa.PrimaryKeyConstraint('sequence', name=op.f('pk_audit'))
    )
    op.create_index('ix_audit_account_id_sequence', 'audit', ['account_id', 'sequence'], unique=False)
    op.create_table('pools',
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('gpus', sa.BigInteger(), nullable=False),
    sa.Column('models', postgresql.JSONB(), nullable=False),
    sa.Column('datacenter', sa.Boolean(), nullable=False),
    sa.CheckConstraint('gpus >= 0', name=op.f('ck_pools_gpus_not_negative')),
    sa.PrimaryKeyConstraint('name', name=op.f('pk_pools'))
    )
    op.create_table('qualifications',
    sa.Column('sequence', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('commit', sa.Text(), nullable=False),
    sa.Column('engine_version', sa.Text(), nullable=False),
    sa.Column('passed', sa.Boolean(), nullable=False),
    sa.Column('tokens_per_second', sa.BigInteger(), nullable=False),
    sa.Column('details', postgresql.JSONB(), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('sequence', name=op.f('pk_qualifications'))
    )
    op.create_index('ix_qualifications_model_commit', 'qualifications', ['model', 'commit'], unique=False)
    op.create_table('users',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('email', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_users')),
    sa.UniqueConstraint('email', name=op.f('uq_users_email'))
    )
    op.create_table('balances',
    sa.Column('book', sa.Text(), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=True),
    sa.Column('may_be_negative', sa.Boolean(), nullable=False),
    sa.Column('balance_nanos', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.CheckConstraint('may_be_negative = (account_id IS NULL)', name=op.f('ck_balances_only_platform_may_be_negative')),
    sa.CheckConstraint('may_be_negative OR balance_nanos >= 0', name=op.f('ck_balances_balance_not_negative')),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_balances_account_id')),
    sa.PrimaryKeyConstraint('book', name=op.f('pk_balances'))
    )
    op.create_index(op.f('ix_balances_account_id'), 'balances', ['account_id'], unique=False)
    op.create_table('files',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('sequence', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('purpose', sa.Text(), nullable=False),
    sa.Column('filename', sa.Text(), nullable=False),
    sa.Column('bytes', sa.BigInteger(), nullable=False),
    sa.Column('sha256', sa.Text(), nullable=False),
    sa.Column('object_key', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('deleted_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('batch_id', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_files_account_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_files')),
    sa.UniqueConstraint('sequence', name=op.f('uq_files_sequence'))
    )
    op.create_index('ix_files_account_id_created_at_sequence', 'files', ['account_id', 'created_at', 'sequence'], unique=False)
    op.create_index(op.f('ix_files_batch_id'), 'files', ['batch_id'], unique=False)
    op.create_table('members',
    sa.Column('user_id', sa.Text(), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('role', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_members_account_id')),
    sa.ForeignKeyConstraint(['user_id'], ['users.id'], name=op.f('fk_members_user_id')),
    sa.PrimaryKeyConstraint('user_id', 'account_id', name=op.f('pk_members'))
    )
    op.create_table('tokens',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('hash', sa.Text(), nullable=False),
    sa.Column('last_four', sa.Text(), nullable=False),
    sa.Column('scopes', postgresql.JSONB(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('created_by', sa.Text(), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('revoked_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('last_used_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_tokens_account_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_tokens')),
    sa.UniqueConstraint('hash', name=op.f('uq_tokens_hash'))
    )
    op.create_index(op.f('ix_tokens_account_id'), 'tokens', ['account_id'], unique=False)
    op.create_table('batches',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('sequence', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('created_by', sa.Text(), nullable=False),
    sa.Column('endpoint', sa.Text(), nullable=False),
    sa.Column('input_file_id', sa.Text(), nullable=False),
    sa.Column('completion_window', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('batch_metadata', postgresql.JSONB(), nullable=True),
    sa.Column('output_expires_after_seconds', sa.BigInteger(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('start_by', sa.DateTime(timezone=True), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('in_progress_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('finalizing_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('completed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('failed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('expired_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('cancelling_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('cancelled_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('ended_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('validated_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('model', sa.Text(), nullable=True),
    sa.Column('card', postgresql.JSONB(), nullable=True),
    sa.Column('ceiling_nanos', sa.BigInteger(), nullable=True),
    sa.Column('input_tokens_estimate', sa.BigInteger(), nullable=True),
    sa.Column('errors', postgresql.JSONB(), nullable=True),
    sa.Column('errors_total', sa.BigInteger(), nullable=False),
    sa.Column('error_code', sa.Text(), nullable=True),
    sa.Column('total', sa.BigInteger(), nullable=False),
    sa.Column('completed', sa.BigInteger(), nullable=False),
    sa.Column('failed', sa.BigInteger(), nullable=False),
    sa.Column('cancelled', sa.BigInteger(), nullable=False),
    sa.Column('input_tokens', sa.BigInteger(), nullable=False),
    sa.Column('output_tokens', sa.BigInteger(), nullable=False),
    sa.Column('output_file_id', sa.Text(), nullable=True),
    sa.Column('error_file_id', sa.Text(), nullable=True),
    sa.Column('reason_code', sa.Text(), nullable=True),
    sa.Column('reason_since', sa.DateTime(timezone=True), nullable=True),
    sa.Column('waiting', sa.Text(), nullable=True),
    sa.Column('first_lease_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('any_line_ran', sa.Boolean(), nullable=False),
    sa.CheckConstraint('completed + failed + cancelled <= total OR total = 0', name=op.f('ck_batches_counts_within_total')),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_batches_account_id')),
    sa.ForeignKeyConstraint(['input_file_id'], ['files.id'], name=op.f('fk_batches_input_file_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_batches')),
    sa.UniqueConstraint('sequence', name=op.f('uq_batches_sequence'))
    )
    op.create_index('ix_batches_account_id_created_at_sequence', 'batches', ['account_id', 'created_at', 'sequence'], unique=False)
    op.create_index('ix_batches_input_file_open', 'batches', ['input_file_id'], unique=False, postgresql_where=sa.text('ended_at IS NULL'))
    op.create_index('ix_batches_open', 'batches', ['status'], unique=False, postgresql_where=sa.text('ended_at IS NULL'))
    op.create_table('batch_events',
    sa.Column('sequence', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('batch_id', sa.Text(), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('actor', sa.Text(), nullable=False),
    sa.Column('details', postgresql.JSONB(), nullable=False),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_batch_events_account_id')),
    sa.ForeignKeyConstraint(['batch_id'], ['batches.id'], name=op.f('fk_batch_events_batch_id')),
    sa.PrimaryKeyConstraint('sequence', name=op.f('pk_batch_events'))
    )
    op.create_index('ix_batch_events_batch_id_sequence', 'batch_events', ['batch_id', 'sequence'], unique=False)
    op.create_table('idempotency_keys',
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('body_sha256', sa.Text(), nullable=False),
    sa.Column('batch_id', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_idempotency_keys_account_id')),
    sa.ForeignKeyConstraint(['batch_id'], ['batches.id'], name=op.f('fk_idempotency_keys_batch_id')),
    sa.PrimaryKeyConstraint('account_id', 'key', name=op.f('pk_idempotency_keys'))
    )
    op.create_table('partitions',
    sa.Column('batch_id', sa.Text(), nullable=False),
    sa.Column('number', sa.BigInteger(), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('lines', sa.BigInteger(), nullable=False),
    sa.Column('tokens_estimate', sa.BigInteger(), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('attempts', sa.BigInteger(), nullable=False),
    sa.Column('lines_done', sa.BigInteger(), nullable=False),
    sa.Column('lines_failed', sa.BigInteger(), nullable=False),
    sa.Column('model_commit', sa.Text(), nullable=True),
    sa.Column('engine_version', sa.Text(), nullable=True),
    sa.Column('runner_version', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_partitions_account_id')),
    sa.ForeignKeyConstraint(['batch_id'], ['batches.id'], name=op.f('fk_partitions_batch_id')),
    sa.PrimaryKeyConstraint('batch_id', 'number', name=op.f('pk_partitions'))
    )
    op.create_table('run_requests',
    sa.Column('sequence', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('batch_id', sa.Text(), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('from_task', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('not_before', sa.DateTime(timezone=True), nullable=False),
    sa.Column('tries', sa.BigInteger(), nullable=False),
    sa.Column('done_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_run_requests_account_id')),
    sa.ForeignKeyConstraint(['batch_id'], ['batches.id'], name=op.f('fk_run_requests_batch_id')),
    sa.PrimaryKeyConstraint('sequence', name=op.f('pk_run_requests'))
    )
    op.create_index(op.f('ix_run_requests_batch_id'), 'run_requests', ['batch_id'], unique=False)
    op.create_index('ix_run_requests_due', 'run_requests', ['not_before'], unique=False, postgresql_where=sa.text('done_at IS NULL'))
    op.create_table('transactions',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('sequence', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('batch_id', sa.Text(), nullable=True),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('actor', sa.Text(), nullable=False),
    sa.Column('why', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_transactions_account_id')),
    sa.ForeignKeyConstraint(['batch_id'], ['batches.id'], name=op.f('fk_transactions_batch_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_transactions')),
    sa.UniqueConstraint('sequence', name=op.f('uq_transactions_sequence'))
    )
    op.create_index('ix_transactions_account_id_sequence', 'transactions', ['account_id', 'sequence'], unique=False)
    op.create_table('usage_facts',
    sa.Column('batch_id', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('day', sa.Date(), nullable=False),
    sa.Column('lines', sa.BigInteger(), nullable=False),
    sa.Column('input_tokens', sa.BigInteger(), nullable=False),
    sa.Column('output_tokens', sa.BigInteger(), nullable=False),
    sa.Column('amount_nanos', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_usage_facts_account_id')),
    sa.ForeignKeyConstraint(['batch_id'], ['batches.id'], name=op.f('fk_usage_facts_batch_id')),
    sa.PrimaryKeyConstraint('batch_id', 'model', name=op.f('pk_usage_facts'))
    )
    op.create_index('ix_usage_facts_account_id_day', 'usage_facts', ['account_id', 'day'], unique=False)
    op.create_table('attempts',
    sa.Column('batch_id', sa.Text(), nullable=False),
    sa.Column('partition', sa.BigInteger(), nullable=False),
    sa.Column('number', sa.BigInteger(), nullable=False),
    sa.Column('lease_id', sa.Text(), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('ended_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('outcome', sa.Text(), nullable=True),
    sa.Column('engine_healthy', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['batch_id', 'partition'], ['partitions.batch_id', 'partitions.number'], name=op.f('fk_attempts_batch_id_partition')),
    sa.PrimaryKeyConstraint('batch_id', 'partition', 'number', name=op.f('pk_attempts')),
    sa.UniqueConstraint('lease_id', name=op.f('uq_attempts_lease_id'))
    )
    op.create_table('entries',
    sa.Column('sequence', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('transaction_id', sa.Text(), nullable=False),
    sa.Column('book', sa.Text(), nullable=False),
    sa.Column('amount_nanos', sa.BigInteger(), nullable=False),
    sa.CheckConstraint('amount_nanos <> 0', name=op.f('ck_entries_amount_not_zero')),
    sa.ForeignKeyConstraint(['book'], ['balances.book'], name=op.f('fk_entries_book')),
    sa.ForeignKeyConstraint(['transaction_id'], ['transactions.id'], name=op.f('fk_entries_transaction_id')),
    sa.PrimaryKeyConstraint('sequence', name=op.f('pk_entries'))
    )
    op.create_index(op.f('ix_entries_book'), 'entries', ['book'], unique=False)
    op.create_index(op.f('ix_entries_transaction_id'), 'entries', ['transaction_id'], unique=False)
    op.create_table('holds',
    sa.Column('batch_id', sa.Text(), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('amount_nanos', sa.BigInteger(), nullable=False),
    sa.Column('transaction_id', sa.Text(), nullable=True),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('card', postgresql.JSONB(), nullable=False),
    sa.CheckConstraint('amount_nanos >= 0', name=op.f('ck_holds_amount_not_negative')),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_holds_account_id')),
    sa.ForeignKeyConstraint(['batch_id'], ['batches.id'], name=op.f('fk_holds_batch_id')),
    sa.ForeignKeyConstraint(['transaction_id'], ['transactions.id'], name=op.f('fk_holds_transaction_id')),
    sa.PrimaryKeyConstraint('batch_id', name=op.f('pk_holds'))
    )
    op.create_index(op.f('ix_holds_account_id'), 'holds', ['account_id'], unique=False)
    op.create_table('leases',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('fence', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('pool', sa.Text(), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('batch_id', sa.Text(), nullable=False),
    sa.Column('partition', sa.BigInteger(), nullable=False),
    sa.Column('granted_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('claim_by', sa.DateTime(timezone=True), nullable=True),
    sa.Column('claimed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('released_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('outcome', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_leases_account_id')),
    sa.ForeignKeyConstraint(['batch_id', 'partition'], ['partitions.batch_id', 'partitions.number'], name=op.f('fk_leases_batch_id_partition')),
    sa.ForeignKeyConstraint(['pool'], ['pools.name'], name=op.f('fk_leases_pool')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_leases')),
    sa.UniqueConstraint('fence', name=op.f('uq_leases_fence'))
    )
    op.create_index(op.f('ix_leases_batch_id'), 'leases', ['batch_id'], unique=False)
    op.create_index('ix_leases_live_pool', 'leases', ['pool'], unique=False, postgresql_where=sa.text('released_at IS NULL'))
    op.create_index('uq_leases_live_partition', 'leases', ['batch_id', 'partition'], unique=True, postgresql_where=sa.text('released_at IS NULL'))
    op.create_table('resolutions',
    sa.Column('batch_id', sa.Text(), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=False),
    sa.Column('charged_nanos', sa.BigInteger(), nullable=False),
    sa.Column('returned_nanos', sa.BigInteger(), nullable=False),
    sa.Column('overrun_nanos', sa.BigInteger(), nullable=False),
    sa.Column('lines', sa.BigInteger(), nullable=False),
    sa.Column('input_tokens', sa.BigInteger(), nullable=False),
    sa.Column('output_tokens', sa.BigInteger(), nullable=False),
    sa.Column('transaction_id', sa.Text(), nullable=True),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint('charged_nanos >= 0 AND returned_nanos >= 0', name=op.f('ck_resolutions_amounts_not_negative')),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_resolutions_account_id')),
    sa.ForeignKeyConstraint(['batch_id'], ['holds.batch_id'], name=op.f('fk_resolutions_batch_id')),
    sa.ForeignKeyConstraint(['transaction_id'], ['transactions.id'], name=op.f('fk_resolutions_transaction_id')),
    sa.PrimaryKeyConstraint('batch_id', name=op.f('pk_resolutions'))
    )
    op.create_index(op.f('ix_resolutions_account_id'), 'resolutions', ['account_id'], unique=False)
