"""What posts looks at customers' books before it writes, and revenue is a book in parts, so that nobody waits there."""

from alembic import op

revision = "0008"
down_revision = "0007"

# The app role may not UPDATE a balance, so it may not lock one either: this locks for it, and changes nothing.
BOOKS_BELOW_ZERO = """
CREATE FUNCTION books_below_zero(books text[], amounts bigint[]) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public AS $$
DECLARE found bigint;
BEGIN
    WITH purse AS MATERIALIZED (
        SELECT one.balance_nanos + leg.amount AS after
        FROM unnest(books, amounts) WITH ORDINALITY AS leg (book, amount, place)
        JOIN public.balances AS one USING (book)
        WHERE NOT one.may_be_negative ORDER BY leg.place FOR UPDATE OF one
    )
    SELECT count(*) INTO found FROM purse WHERE after < 0;
    RETURN found;
END $$;
REVOKE ALL ON FUNCTION books_below_zero(text[], bigint[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION books_below_zero(text[], bigint[]) TO gridline_app;
"""


REVENUE_IN_PARTS = """
INSERT INTO balances (book, account_id, may_be_negative)
SELECT 'platform:revenue:' || lpad(part::text, 2, '0'), NULL, true FROM generate_series(0, 15) AS part
ON CONFLICT DO NOTHING;
"""


def upgrade() -> None:
    op.execute(BOOKS_BELOW_ZERO)
    # The old book keeps what was posted to it; new charges go to its parts.
    op.execute(REVENUE_IN_PARTS)
