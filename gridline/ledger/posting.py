"""The only writer of entries: balanced, append-only, once per derived id. Knows no batch, no price, no token.

The database keeps the rules (entries sum to zero at commit, balances follow entries, no customer's book below
zero, no UPDATE or DELETE for the app role); this file turns their breach into errors that say what to do.
"""

from dataclasses import dataclass

import psycopg
from sqlalchemy import exists, select, text
from sqlalchemy.dialects.postgresql import insert

from gridline import ids
from gridline.db.work import Work
from gridline.errors import InvalidRequest, InvariantBroken
from gridline.ledger.books import PLATFORM_BOOKS, PLATFORM_GRANTED, available, held
from gridline.ledger.errors import BookMissing, KeyReused, WouldOverdraw
from gridline.ledger.tables import Balance, Entry, Transaction

_NOT_NEGATIVE = "ck_balances_balance_not_negative"
_BOOK_EXISTS = "fk_entries_book"


_POST = text("""
WITH short AS MATERIALIZED (
    SELECT books_below_zero(CAST(:books AS text[]), CAST(:amounts AS bigint[])) AS books
), made AS (
    INSERT INTO transactions (id, account_id, kind, batch_id, at, actor, why)
    SELECT :id, :account_id, :kind, CAST(:batch_id AS text), CAST(:at AS timestamptz), :actor, :why
    FROM short WHERE books = 0
    ON CONFLICT (id) DO NOTHING RETURNING id
), written AS (
    INSERT INTO entries (transaction_id, book, amount_nanos)
    SELECT made.id, leg.book, leg.amount_nanos FROM made CROSS JOIN unnest(
        CAST(:books AS text[]), CAST(:amounts AS bigint[])) WITH ORDINALITY AS leg (book, amount_nanos, place)
    ORDER BY leg.place
)
SELECT (SELECT count(*) FROM made), books FROM short
""")
"""A transaction with its entries in one statement: what holds and settlements of every batch wait for.

Customers' books are locked first and looked at, so that one that falls short writes nothing and breaks no transaction.
"""


@dataclass(frozen=True)
class Leg:
    """One entry to be: a book and a signed amount in nano-credits, never zero."""

    book: str
    amount_nanos: int


@dataclass(frozen=True)
class Posting:
    """A transaction to be. ``id`` derives from what causes it, so that a second try writes nothing."""

    id: str
    account_id: str
    kind: str
    legs: tuple[Leg, ...]
    actor: str
    why: str
    batch_id: str | None = None

    def __post_init__(self) -> None:
        amounts = [leg.amount_nanos for leg in self.legs]
        if not amounts or any(type(one) is not int or one == 0 for one in amounts) or sum(amounts) != 0:
            raise InvariantBroken(
                f"Transaction {self.id} must have whole amounts, none of them zero, that sum to zero: {amounts}."
            )


def open_platform_books(work: Work) -> None:
    """Open the platform's books where they are missing; the only ones that may be below zero."""
    _open(work, PLATFORM_BOOKS, account_id=None)


def open_books(work: Work, account_id: str) -> None:
    """Open an account's books (and the platform's) at zero; a second call finds them."""
    open_platform_books(work)
    _open(work, (available(account_id), held(account_id)), account_id=account_id)


def post(work: Work, posting: Posting) -> bool:
    """Write a transaction with its entries; False when its id was posted before (by anyone) and nothing was written.

    Waits while another transaction is posting the same id. Entries go in by book name, so that two
    postings lock the books they share in the same order.

    Raises:
        WouldOverdraw: a customer's book would fall below zero; nothing was written, and the unit of work can go on.
        BookMissing: a book was never opened.
    """
    legs = sorted(posting.legs, key=lambda leg: leg.book)
    values = {
        "id": posting.id,
        "account_id": posting.account_id,
        "kind": posting.kind,
        "batch_id": posting.batch_id,
        "at": work.now,
        "actor": posting.actor,
        "why": posting.why,
        "books": [leg.book for leg in legs],
        "amounts": [leg.amount_nanos for leg in legs],
    }
    try:
        row = work.first(_POST, **values)
    except psycopg.IntegrityError as error:
        raise _meaning(posting, error) from error
    made, short = row or (0, 0)
    if short and not _posted(work, posting.id):
        raise WouldOverdraw(posting.id)
    return bool(made)


def post_under_key(work: Work, posting: Posting, *, key: str) -> bool:
    """Post what an operator asks for under a key; False when that very thing was posted before.

    Raises:
        KeyReused: the key was used before for another amount, or another batch.
        WouldOverdraw: a customer's book would fall below zero.
    """
    if post(work, posting):
        work.notify("credits")
        return True
    book = available(posting.account_id)
    wanted = sum(leg.amount_nanos for leg in posting.legs if leg.book == book)
    earlier = work.session.get_one(Transaction, posting.id)
    if earlier.batch_id != posting.batch_id or _amount(work, posting.id, book) != wanted:
        raise KeyReused(
            f"Key {key!r} was used before for another {posting.kind}. Use a new key for a new one.",
            param="key",
        )
    return False


def grant(work: Work, account_id: str, amount_nanos: int, *, actor: str, why: str, key: str) -> str:
    """Give an account credit, once per key; returns the transaction's id.

    Raises:
        InvalidRequest: the amount is not above zero.
        KeyReused: the key was used before for another amount.
    """
    if amount_nanos <= 0:
        raise InvalidRequest(f"A grant is above 0 nano-credits, got {amount_nanos}.", param="amount")
    posting = Posting(
        id=ids.derived("transaction", "grant", account_id, key),
        account_id=account_id,
        kind="grant",
        legs=(Leg(PLATFORM_GRANTED, -amount_nanos), Leg(available(account_id), amount_nanos)),
        actor=actor,
        why=why,
    )
    post_under_key(work, posting, key=key)
    return posting.id


def _open(work: Work, names: tuple[str, ...], *, account_id: str | None) -> None:
    rows = [{"book": name, "account_id": account_id, "may_be_negative": account_id is None} for name in names]
    work.session.execute(insert(Balance).values(rows).on_conflict_do_nothing(index_elements=["book"]))


def _posted(work: Work, transaction_id: str) -> bool:
    return bool(work.session.scalar(select(exists().where(Transaction.id == transaction_id))))


def _amount(work: Work, transaction_id: str, book: str) -> int | None:
    return work.session.scalar(
        select(Entry.amount_nanos).where(Entry.transaction_id == transaction_id, Entry.book == book)
    )


def _meaning(posting: Posting, error: psycopg.IntegrityError) -> Exception:
    constraint = error.diag.constraint_name
    if constraint == _NOT_NEGATIVE:
        return WouldOverdraw(posting.id)
    if constraint == _BOOK_EXISTS:
        return BookMissing(
            f"Transaction {posting.id} names a book that was never opened. Open the books first."
        )
    return error
