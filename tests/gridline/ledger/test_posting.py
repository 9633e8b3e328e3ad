"""Posting: balanced, append-only, once per id, never below zero."""

import pytest
from sqlalchemy import Engine, func, insert, select, text
from sqlalchemy.exc import IntegrityError, ProgrammingError

from gridline.clock import FrozenClock
from gridline.db.work import Work, unit_of_work
from gridline.errors import InvalidRequest, InvariantBroken
from gridline.ledger.books import PLATFORM_GRANTED, available, held
from gridline.ledger.errors import BookMissing, KeyReused, WouldOverdraw
from gridline.ledger.posting import Leg, Posting, grant, post
from gridline.ledger.proving import prove
from gridline.ledger.reading import Balances, balance
from gridline.ledger.tables import Balance, Entry, Transaction
from tests.gridline.ledger.bench import account, at_once


def posting(account_id: str, *legs: Leg, name: str = "txn_1") -> Posting:
    """A posting with nothing special about it."""
    return Posting(id=name, account_id=account_id, kind="adjust", legs=legs, actor="operator", why="test")


def test_a_grant_is_available_at_once_and_only_once(work: Work) -> None:
    """A grant repeated with its key gives nothing more; the platform's book carries the other side."""
    one = account(work, "one")
    first = grant(work, one.id, 5, actor="operator", why="welcome", key="k")
    assert grant(work, one.id, 5, actor="operator", why="welcome", key="k") == first
    assert balance(work, one.id) == Balances(available_nanos=5, held_nanos=0)
    assert work.session.get_one(Balance, PLATFORM_GRANTED).balance_nanos == -5
    stored = work.session.get_one(Transaction, first)
    assert (stored.actor, stored.why, stored.at) == ("operator", "welcome", work.now)
    with pytest.raises(KeyReused):
        grant(work, one.id, 6, actor="operator", why="welcome", key="k")
    with pytest.raises(InvalidRequest):
        grant(work, one.id, 0, actor="operator", why="nothing", key="zero")
    assert prove(work) == []


@pytest.mark.parametrize("amounts", [(), (5, -4), (0, 0), (5, -5, 0), (1.0, -1.0), (True, -1)])
def test_a_posting_that_does_not_balance_cannot_be_made(amounts: tuple[int, ...]) -> None:
    """Legs are whole, not zero, and sum to zero, before any database sees them."""
    with pytest.raises(InvariantBroken):
        posting("acct_1", *(Leg("book", amount) for amount in amounts))


def test_a_posting_cannot_overdraw_or_name_a_missing_book(work: Work) -> None:
    """A refused posting leaves no row, and after an overdraft the unit of work goes on."""
    one = account(work, "one", credit_nanos=5)
    with pytest.raises(BookMissing), work.session.begin_nested():
        post(work, posting(one.id, Leg(available(one.id), -5), Leg("nowhere", 5)))
    with pytest.raises(WouldOverdraw):
        post(work, posting(one.id, Leg(available(one.id), -6), Leg(held(one.id), 6)))
    assert work.session.get(Transaction, "txn_1") is None
    assert post(work, posting(one.id, Leg(available(one.id), -5), Leg(held(one.id), 5)))
    assert balance(work, one.id) == Balances(available_nanos=0, held_nanos=5)


def test_the_database_refuses_what_the_code_never_does(database: Engine, clock: FrozenClock) -> None:
    """Entries cannot be changed, balances cannot be written, and an unbalanced transaction cannot commit."""
    with unit_of_work() as work:
        one = account(work, "one", credit_nanos=5)
    for statement in (
        "UPDATE entries SET amount_nanos = 50",
        "DELETE FROM entries",
        "UPDATE transactions SET why = ''",
        "UPDATE balances SET balance_nanos = 50",
        "INSERT INTO balances (book, may_be_negative, balance_nanos) VALUES ('mine', true, 50)",
    ):
        with pytest.raises(ProgrammingError, match="permission denied"), database.begin() as connection:
            connection.execute(text(statement))

    def unbalanced() -> None:
        with unit_of_work() as work:
            values = {"id": "txn_bad", "account_id": one.id, "kind": "adjust", "at": work.now}
            work.session.execute(insert(Transaction).values(**values, actor="x", why="x"))
            leg = {"transaction_id": "txn_bad", "book": available(one.id), "amount_nanos": 1}
            work.session.execute(insert(Entry).values(**leg))

    with pytest.raises(IntegrityError, match="does not balance"):
        unbalanced()
    with unit_of_work() as work:
        assert balance(work, one.id).available_nanos == 5
        assert prove(work) == []


def test_one_id_posted_by_many_at_once_is_posted_once(database: Engine, clock: FrozenClock) -> None:
    """Twenty grants under one key at the same moment give credit once, and all name the same transaction."""
    with unit_of_work() as work:
        one = account(work, "one")

    def give(_: int) -> str:
        with unit_of_work() as work:
            return grant(work, one.id, 5, actor="operator", why="welcome", key="k")

    assert len(set(at_once(20, give))) == 1
    with unit_of_work() as work:
        assert balance(work, one.id).available_nanos == 5
        assert work.session.scalar(select(func.count()).select_from(Transaction)) == 1


def test_the_proof_sees_what_is_wrong(database: Engine, clock: FrozenClock, owner: Engine) -> None:
    """Books changed behind the app's back are reported, a sentence for each broken promise."""
    with unit_of_work() as work:
        one = account(work, "one", credit_nanos=5)
        assert prove(work) == []
    with owner.begin() as connection:
        connection.execute(text("UPDATE balances SET balance_nanos = 7 WHERE book = :b"), {"b": held(one.id)})
        connection.execute(text("UPDATE entries SET amount_nanos = 6 WHERE amount_nanos = 5"))
    with unit_of_work() as work:
        broken = "\n".join(prove(work))
    assert "does not balance: its entries sum to 1" in broken
    assert f"book {held(one.id)} says 7 nano-credits, its entries sum to 0" in broken
    assert f"account {one.id} holds 7 nano-credits, its open holds are 0" in broken
