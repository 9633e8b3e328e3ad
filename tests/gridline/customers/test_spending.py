"""What counts to a UTC day or month, and when a daily limit or a budget is full."""

from datetime import UTC, datetime, timedelta

import pytest

from gridline.customers import spending
from gridline.customers.tables import Account
from gridline.db.work import Work
from gridline.errors import LimitExceeded
from gridline.ledger.holding import place
from gridline.ledger.posting import grant
from gridline.ledger.settling import settle
from tests.gridline.ledger.bench import CARD, account, batch


@pytest.fixture
def one(work: Work) -> Account:
    """An account that may hold 1,000 nano-credits a day."""
    made = account(work, "one", credit_nanos=10_000)
    made.daily_credits_nanos_max = 1000
    work.session.flush()
    return made


def hold(work: Work, account_id: str, amount_nanos: int) -> str:
    """A batch with a hold of so much; its id."""
    made = batch(work, account_id)
    place(work, batch_id=made.id, account_id=account_id, amount_nanos=amount_nanos, card=CARD)
    return made.id


def test_a_days_use_is_its_holds_less_what_came_back(work: Work, one: Account) -> None:
    """What returns of a hold is free again that day, what was charged is used; other accounts do not count."""
    assert spending.today(work, one).used_nanos == 0
    first = hold(work, one.id, 400)
    hold(work, one.id, 500)
    other = account(work, "other", credit_nanos=1000)
    hold(work, other.id, 1000)
    assert spending.today(work, one).used_nanos == 900
    settle(work, batch_id=first, charge_nanos=300, lines=1, input_tokens=3, output_tokens=4)
    use = spending.today(work, one)
    assert (use.limit_nanos, use.used_nanos) == (1000, 800)
    assert use.resets_at == datetime(2026, 1, 6, tzinfo=UTC)
    assert use.shown() == {"limit": "0.000001000", "current": "0.000000800", "resets_at": 1767657600}


def test_the_day_ends_at_midnight_utc(work: Work, one: Account) -> None:
    """A hold counts to the day on which it was placed, to the microsecond, whenever it is settled."""
    work.now = datetime(2026, 1, 5, 23, 59, 59, 999_999, tzinfo=UTC)
    late = hold(work, one.id, 1000)
    assert spending.today(work, one).used_nanos == 1000
    work.now += timedelta(microseconds=1)
    assert spending.today(work, one).used_nanos == 0
    settle(work, batch_id=late, charge_nanos=0, lines=0, input_tokens=0, output_tokens=0)
    assert spending.today(work, one).used_nanos == 0
    hold(work, one.id, 7)
    assert spending.today(work, one).used_nanos == 7


def test_a_create_is_refused_once_the_limit_is_reached(work: Work, one: Account) -> None:
    """One unit below it a create goes on; at it the refusal says limit, use, reset and how to ask for more."""
    hold(work, one.id, 999)
    spending.check_create(work, one.id)
    hold(work, one.id, 1)
    grant(work, one.id, 10**9, actor="operator", why="a deposit", key="more")
    with pytest.raises(LimitExceeded) as refused:
        spending.check_create(work, one.id)
    assert refused.value.limit == {
        "name": "daily_credits",
        "limit": "0.000001000",
        "current": "0.000001000",
        "resets_at": 1767657600,
        "unit": "credits",
    }
    for words in ("2026-01-06 00:00 UTC", "No batch was made", "write to the operator with a batch id"):
        assert words in refused.value.message


def test_an_account_with_a_limit_of_nothing_makes_no_batch(work: Work, one: Account) -> None:
    """Zero stops an account, as an operator means it."""
    one.daily_credits_nanos_max = 0
    work.session.flush()
    with pytest.raises(LimitExceeded):
        spending.check_create(work, one.id)


def test_a_month_ends_with_its_last_day(work: Work, one: Account) -> None:
    """A hold counts to the UTC month in which it was placed; February of a leap year has its 29th."""
    assert spending.this_month(work, one) is None
    one.monthly_budget_nanos, one.daily_credits_nanos_max = 1000, 10**9
    work.now = datetime(2028, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC)
    first = hold(work, one.id, 600)
    settle(work, batch_id=first, charge_nanos=200, lines=1, input_tokens=3, output_tokens=4)
    month = spending.this_month(work, one)
    assert month is not None
    assert (month.used_nanos, month.left_nanos, month.resets_at) == (
        200,
        800,
        datetime(2028, 3, 1, tzinfo=UTC),
    )
    work.now += timedelta(microseconds=1)
    month = spending.this_month(work, one)
    assert month is not None
    assert (month.used_nanos, month.resets_at) == (0, datetime(2028, 4, 1, tzinfo=UTC))


def test_a_hold_may_fill_the_budget_and_not_pass_it(work: Work, one: Account) -> None:
    """Exactly at the budget is fine; the refusal names budget, what is left and who may raise it."""
    one.monthly_budget_nanos = 500
    filling = hold(work, one.id, 500)
    spending.check_hold(work, one.id, batch_id=filling, hold_nanos=500)
    over = hold(work, one.id, 1)
    with pytest.raises(LimitExceeded) as refused:
        spending.check_hold(work, one.id, batch_id=over, hold_nanos=1)
    met = refused.value.limit
    assert met is not None
    assert (met["name"], met["current"]) == ("monthly_budget", "0.000000500")
    for words in ("0.000000000 are left this month", "owner raise the budget", "UTC month", "Nothing ran"):
        assert words in refused.value.message
    with pytest.raises(LimitExceeded):
        spending.check_create(work, one.id)
