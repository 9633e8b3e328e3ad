"""An account's entries as its customer reads them: each transaction with what it did to available and held credit."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Select, case, cast, func, select, tuple_

from gridline import ids
from gridline.clock import unix
from gridline.db.work import Work
from gridline.errors import NotFound
from gridline.ledger.books import available, held
from gridline.ledger.reading import Balances
from gridline.ledger.tables import Entry, Transaction
from gridline.money import credits_text

READ_ROWS = 1_000
"""Entries read at a time, so that a statement of any length is held by no one."""


class Movement(NamedTuple):
    """One transaction, from the account's side; changes in nano-credits."""

    id: str
    sequence: int
    at: datetime
    kind: str
    """grant, adjust, refund, hold or settle."""
    batch_id: str | None
    actor: str
    why: str
    available_nanos: int
    """What it added to available credit, below zero what it took."""
    held_nanos: int
    """The same of held credit."""

    @property
    def amount_nanos(self) -> int:
        """What it added to all of the account's credit: 0 for a hold, minus the charge for a settlement."""
        return self.available_nanos + self.held_nanos

    @property
    def who(self) -> str:
        """``operator`` or ``platform``: the operator's own name is the platform's business."""
        return self.actor.partition(":")[0]


def page(work: Work, *, account_id: str, after: str | None, limit: int) -> tuple[list[Movement], bool]:
    """Up to ``limit`` of the account's movements, newest first, after the given id; and whether there are more.

    Raises:
        NotFound: the cursor is no transaction of this account.
    """
    rows = _movements(account_id)
    if after is not None:
        rows = rows.where(Transaction.sequence < _sequence_of(work, account_id, after))
    found = work.session.execute(rows.order_by(Transaction.sequence.desc()).limit(limit + 1)).all()
    return [Movement._make(row) for row in found[:limit]], len(found) > limit


def between(work: Work, account_id: str, begin: datetime, end: datetime) -> Iterator[Movement]:
    """The account's movements from ``begin`` to before ``end``, oldest first."""
    rows = _movements(account_id).where(Transaction.at < end)
    place = tuple_(Transaction.at, Transaction.sequence)
    last: tuple[datetime, int] = (begin, 0)
    while True:
        chunk = rows.where(place > last).order_by(Transaction.at, Transaction.sequence).limit(READ_ROWS)
        found = [Movement._make(row) for row in work.session.execute(chunk)]
        yield from found
        if len(found) < READ_ROWS:
            return
        last = (found[-1].at, found[-1].sequence)


def balance_before(work: Work, account_id: str, moment: datetime) -> Balances:
    """The account's balances as the transactions before that instant left them."""
    row = work.session.execute(
        select(*_sums(account_id))
        .join(Transaction, Transaction.id == Entry.transaction_id)
        .where(Transaction.account_id == account_id, Transaction.at < moment)
    ).one()
    return Balances(available_nanos=row[0], held_nanos=row[1])


def entry_object(one: Movement) -> dict[str, Any]:
    """A movement as the API shows it."""
    return {
        "id": one.id,
        "object": "gridline.entry",
        "created_at": unix(one.at),
        "kind": one.kind,
        "amount": credits_text(one.amount_nanos),
        "available_change": credits_text(one.available_nanos),
        "held_change": credits_text(one.held_nanos),
        "batch_id": one.batch_id,
        "actor": one.who,
        "why": one.why,
    }


def _sums(account_id: str) -> tuple[Any, Any]:
    """What entries add to the account's two books."""

    def of(book: str) -> Any:
        total = func.sum(case((Entry.book == book, Entry.amount_nanos), else_=0))
        return cast(func.coalesce(total, 0), BigInteger)  # a sum of integers is a decimal to the database

    return of(available(account_id)), of(held(account_id))


def _movements(account_id: str) -> Select[*tuple[Any, ...]]:
    sums = [
        select(one).where(Entry.transaction_id == Transaction.id).correlate(Transaction).scalar_subquery()
        for one in _sums(account_id)
    ]
    return select(
        Transaction.id,
        Transaction.sequence,
        Transaction.at,
        Transaction.kind,
        Transaction.batch_id,
        Transaction.actor,
        Transaction.why,
        *sums,
    ).where(Transaction.account_id == account_id)


def _sequence_of(work: Work, account_id: str, transaction_id: str) -> int:
    found = None
    # Text that is no id never reaches the database: it could hold what a database text cannot.
    if ids.is_id("transaction", transaction_id):
        found = work.session.scalar(
            select(Transaction.sequence).where(
                Transaction.id == transaction_id, Transaction.account_id == account_id
            )
        )
    if found is None:
        raise NotFound(f"No such entry: {transaction_id}", param="after")
    return found
