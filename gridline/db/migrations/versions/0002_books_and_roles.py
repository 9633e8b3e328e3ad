"""The rules of the books that the database itself holds, and what each role may do."""

from alembic import op

revision = "0002"
down_revision = "0001"

APPEND_ONLY = ("audit", "batch_events", "entries", "holds", "qualifications", "resolutions", "transactions")

BALANCE_KEPT_BY_ENTRIES = """
CREATE FUNCTION add_entry_to_balance() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public AS $$
BEGIN
    UPDATE public.balances SET balance_nanos = balance_nanos + NEW.amount_nanos WHERE book = NEW.book;
    RETURN NULL;
END $$;
CREATE TRIGGER add_entry_to_balance AFTER INSERT ON entries
    FOR EACH ROW EXECUTE FUNCTION add_entry_to_balance();
"""

TRANSACTIONS_BALANCE = """
CREATE FUNCTION check_transaction_balances() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public AS $$
DECLARE total numeric;
BEGIN
    SELECT sum(amount_nanos) INTO total FROM public.entries WHERE transaction_id = NEW.transaction_id;
    IF total <> 0 THEN
        RAISE EXCEPTION 'transaction % does not balance: its entries sum to % nano-credits', NEW.transaction_id, total
            USING ERRCODE = 'check_violation', CONSTRAINT = 'ck_transactions_balance';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER ck_transactions_balance AFTER INSERT ON entries
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_transaction_balances();
"""

GRANTS = """
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO gridline_app, gridline_read;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO gridline_app, gridline_read;
REVOKE SELECT ON tokens FROM gridline_read;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO gridline_app;
REVOKE INSERT, UPDATE, DELETE ON balances, alembic_version FROM gridline_app;
GRANT INSERT (book, account_id, may_be_negative) ON balances TO gridline_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO gridline_app;
"""


def upgrade() -> None:
    op.execute(BALANCE_KEPT_BY_ENTRIES)
    op.execute(TRANSACTIONS_BALANCE)
    op.execute(GRANTS)
    for table in APPEND_ONLY:
        op.execute(f"REVOKE UPDATE, DELETE ON {table} FROM gridline_app")
