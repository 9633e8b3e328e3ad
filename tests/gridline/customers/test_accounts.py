"""Accounts and the slots of their open batches."""

import pytest
from sqlalchemy import select

from gridline import limits
from gridline.customers import accounts
from gridline.customers.errors import AccountNameTaken
from gridline.customers.tables import Account, Audit
from gridline.db.work import unit_of_work
from gridline.errors import InvariantBroken, LimitExceeded, NotFound
from gridline.ledger import reading
from tests.racing import together


def take(account_id: str) -> None:
    with unit_of_work() as work:
        accounts.slot_take(work, account_id)


def test_a_new_account_has_books_limits_and_an_audit_row(account_id: str) -> None:
    """Two open batches, 100 credits a day, empty books, and a note of who opened it."""
    with unit_of_work() as work:
        account = accounts.get(work, account_id)
        assert account.open_batches_max == limits.OPEN_BATCHES_DEFAULT == 2
        assert account.daily_credits_nanos_max == 100 * 10**9
        assert reading.balance(work, account_id) == reading.Balances(available_nanos=0, held_nanos=0)
        assert work.session.scalars(select(Audit.action)).all() == ["account.opened"]


def test_a_name_names_one_account(account_id: str) -> None:
    """A second account of the same name is refused and leaves nothing behind."""
    with unit_of_work() as work, pytest.raises(AccountNameTaken):
        accounts.open_account(work, "tester")
    with unit_of_work() as work:
        assert accounts.find(work, "tester") is not None
        assert accounts.find(work, "nobody") is None
        with pytest.raises(NotFound):
            accounts.get(work, "acct_none")


def test_the_last_slot_is_taken_once(account_id: str) -> None:
    """Twenty takes at once at a limit of two: two succeed, the others learn limit and use."""
    answers = together(20, lambda: take(account_id))
    refused = [answer for answer in answers if isinstance(answer, LimitExceeded)]
    assert len(refused) == 18
    assert all(one.limit == {"name": "open_batches", "limit": 2, "current": 2} for one in refused)
    with unit_of_work() as work:
        assert work.session.get_one(Account, account_id).open_batches == 2


def test_a_slot_given_back_can_be_taken_again(account_id: str) -> None:
    """Take, take, give, take."""
    take(account_id)
    take(account_id)
    with unit_of_work() as work:
        accounts.slot_give(work, account_id)
    take(account_id)
    with pytest.raises(LimitExceeded):
        take(account_id)


def test_giving_back_what_was_never_taken_is_a_bug(account_id: str) -> None:
    """The count never falls below zero."""
    with unit_of_work() as work, pytest.raises(InvariantBroken):
        accounts.slot_give(work, account_id)
