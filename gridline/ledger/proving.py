"""Proves the books from their rows alone: what must hold is checked again, trusting no trigger and no code.

Each check is one query that finds what breaks a promise; a sound ledger finds nothing.
"""

from gridline.db.work import Work

_CHECKS = (
    (
        "transaction {} does not balance: its entries sum to {} nano-credits",
        "SELECT transaction_id, sum(amount_nanos) FROM entries GROUP BY 1 HAVING sum(amount_nanos) <> 0",
    ),
    (
        "transaction {} has no entries",
        "SELECT id FROM transactions t WHERE NOT EXISTS (SELECT FROM entries WHERE transaction_id = t.id)",
    ),
    (
        "book {} says {} nano-credits, its entries sum to {}",
        """SELECT b.book, b.balance_nanos, coalesce(sum(e.amount_nanos), 0)
        FROM balances b LEFT JOIN entries e USING (book)
        GROUP BY b.book HAVING b.balance_nanos <> coalesce(sum(e.amount_nanos), 0)""",
    ),
    (
        "customer's book {} is below zero: {} nano-credits",
        "SELECT book, balance_nanos FROM balances WHERE account_id IS NOT NULL AND balance_nanos < 0",
    ),
    (
        "transaction {} of account {} moves book {}, which is another account's",
        """SELECT t.id, t.account_id, b.book FROM transactions t JOIN entries e ON e.transaction_id = t.id
        JOIN balances b USING (book) WHERE b.account_id <> t.account_id""",
    ),
    (
        "account {} holds {} nano-credits, its open holds are {}",
        """SELECT b.account_id, b.balance_nanos, coalesce(sum(h.amount_nanos), 0)
        FROM balances b LEFT JOIN holds h ON h.account_id = b.account_id
            AND NOT EXISTS (SELECT FROM resolutions r WHERE r.batch_id = h.batch_id)
        WHERE b.book = b.account_id || ':held'
        GROUP BY b.account_id, b.balance_nanos HAVING b.balance_nanos <> coalesce(sum(h.amount_nanos), 0)""",
    ),
    (
        "hold of batch {} is {} nano-credits, its transaction moved {}",
        """SELECT h.batch_id, h.amount_nanos, coalesce(e.amount_nanos, 0) FROM holds h LEFT JOIN entries e
            ON e.transaction_id = h.transaction_id AND e.book = h.account_id || ':held'
        WHERE h.amount_nanos <> coalesce(e.amount_nanos, 0)""",
    ),
    (
        "resolution of batch {} does not match its hold of {} nano-credits: charged {}, returned {}",
        """SELECT r.batch_id, h.amount_nanos, r.charged_nanos, r.returned_nanos FROM resolutions r
        JOIN holds h USING (batch_id)
        WHERE h.amount_nanos <> r.charged_nanos + r.returned_nanos OR h.account_id <> r.account_id""",
    ),
    (
        "resolution of batch {} charged {} nano-credits and overran by {}, its transaction says {}",
        """SELECT r.batch_id, r.charged_nanos, r.overrun_nanos, coalesce(e.amount_nanos, 0)
        FROM resolutions r LEFT JOIN entries e
            ON e.transaction_id = r.transaction_id AND starts_with(e.book, 'platform:revenue')
        WHERE r.charged_nanos + r.overrun_nanos <> coalesce(e.amount_nanos, 0)""",
    ),
    (
        "batch {} was charged {} nano-credits, {} of them were refunded",
        """SELECT r.batch_id, r.charged_nanos, sum(e.amount_nanos)
        FROM resolutions r JOIN transactions t ON t.batch_id = r.batch_id AND t.kind = 'refund'
        JOIN entries e ON e.transaction_id = t.id AND e.amount_nanos > 0
        GROUP BY 1, 2 HAVING sum(e.amount_nanos) > r.charged_nanos""",
    ),
    (
        "batch {} was charged {} nano-credits, its usage facts come to {}",
        """SELECT r.batch_id, r.charged_nanos + r.overrun_nanos, sum(u.amount_nanos)
        FROM resolutions r JOIN usage_facts u USING (batch_id)
        GROUP BY 1, 2 HAVING r.charged_nanos + r.overrun_nanos <> sum(u.amount_nanos)""",
    ),
    (
        "batch {} was charged {} nano-credits and overran by {}, its tokens at its rates come to {}",
        """SELECT batch_id, charged_nanos, overrun_nanos, price FROM (
            SELECT r.batch_id, r.charged_nanos, r.overrun_nanos,
                r.input_tokens * (h.card ->> 'input_price_nanos')::numeric
                + CASE WHEN h.card ->> 'kind' = 'embedding' THEN 0 ELSE r.output_tokens END
                    * (h.card ->> 'output_price_nanos')::numeric AS price
            FROM resolutions r JOIN holds h USING (batch_id)
        ) priced WHERE charged_nanos + overrun_nanos IS DISTINCT FROM price""",
    ),
)


def prove(work: Work) -> list[str]:
    """Every promise of the books that does not hold, a sentence each; an empty list means that they hold."""
    connection = work.session.connection()
    broken = []
    for sentence, query in _CHECKS:
        # As it stands: the colon in a book's name is no parameter.
        broken += [sentence.format(*row) for row in connection.exec_driver_sql(query)]
    return broken
