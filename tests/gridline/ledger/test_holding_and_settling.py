"""Hold, settle, release: one of each a batch, whatever is re-run or at once."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine, func, select

from gridline.clock import FrozenClock
from gridline.db.work import Work, unit_of_work
from gridline.errors import InvariantBroken, NotFound
from gridline.ledger import reading
from gridline.ledger.books import PLATFORM_OVERRUN
from gridline.ledger.errors import InsufficientCredit
from gridline.ledger.holding import place
from gridline.ledger.proving import prove
from gridline.ledger.reading import Balances, balance
from gridline.ledger.settling import settle
from gridline.ledger.tables import Balance, Hold, Resolution, Transaction
from gridline.usage import facts
from tests.gridline.ledger.bench import CARD, account, at_once, batch


def hold(work: Work, batch_id: str, account_id: str, amount_nanos: int) -> None:
    """Place a hold with the tests' rates."""
    place(work, batch_id=batch_id, account_id=account_id, amount_nanos=amount_nanos, card=CARD)


def charge(work: Work, batch_id: str, input_tokens: int, output_tokens: int) -> Resolution | None:
    """Settle one line of these tokens; how the hold ended."""
    settle(
        work,
        batch_id=batch_id,
        charge_nanos=input_tokens * 20 + output_tokens * 60,
        lines=1,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )
    return reading.resolution_of(work, batch_id)


def test_a_batch_is_held_charged_and_gets_the_rest_back(work: Work, clock: FrozenClock) -> None:
    """Hold, charge and return are exact, and doing each again changes nothing."""
    one = account(work, "one", credit_nanos=1000)
    made = batch(work, one.id)
    for amount in (400, 999):
        hold(work, made.id, one.id, amount)
    assert balance(work, one.id) == Balances(available_nanos=600, held_nanos=400)
    assert [open_.batch_id for open_ in reading.open_holds(work)] == [made.id]

    for tokens in ((3, 4), (1, 1)):
        end = charge(work, made.id, *tokens)
        assert end is not None
        assert (end.charged_nanos, end.returned_nanos, end.overrun_nanos) == (300, 100, 0)
    assert balance(work, one.id) == Balances(available_nanos=700, held_nanos=0)
    assert reading.revenue_nanos(work) == 300
    assert reading.open_holds(work) == []
    assert prove(work) == []


@pytest.mark.parametrize("credit", [1, 1000])
def test_a_batch_held_at_nothing_keeps_that_hold(work: Work, credit: int) -> None:
    """A hold of zero moves no credit and stands like any other: a later one neither moves any nor is refused."""
    one = account(work, "one", credit_nanos=credit)
    made = batch(work, one.id)
    for amount in (0, 332):
        hold(work, made.id, one.id, amount)
    assert balance(work, one.id) == Balances(available_nanos=credit, held_nanos=0)
    kept = reading.hold_of(work, made.id)
    assert kept is not None
    assert kept.amount_nanos == 0
    assert prove(work) == []


def test_credit_that_falls_short_holds_nothing(work: Work) -> None:
    """A refused hold says what is available and what is needed, writes nothing, and can succeed later."""
    one = account(work, "one", credit_nanos=1000)
    made = batch(work, one.id)
    with pytest.raises(InsufficientCredit) as refused:
        hold(work, made.id, one.id, 1001)
    assert (refused.value.available_nanos, refused.value.needed_nanos) == (1000, 1001)
    assert refused.value.code == "insufficient_quota"
    assert "0.000001001 credits are needed, 0.000001000 are available" in refused.value.message
    assert reading.hold_of(work, made.id) is None
    hold(work, made.id, one.id, 1000)
    assert balance(work, one.id) == Balances(available_nanos=0, held_nanos=1000)


def test_usage_beyond_the_hold_is_the_platforms(work: Work, caplog: pytest.LogCaptureFixture) -> None:
    """The charge is capped at the hold, the rest is booked as overrun with an alarm, and the batch still ends."""
    one = account(work, "one", credit_nanos=1000)
    made = batch(work, one.id)
    hold(work, made.id, one.id, 100)
    end = charge(work, made.id, 1, 2)
    assert end is not None
    assert (end.charged_nanos, end.returned_nanos, end.overrun_nanos) == (100, 0, 40)
    assert balance(work, one.id) == Balances(available_nanos=900, held_nanos=0)
    assert work.session.get_one(Balance, PLATFORM_OVERRUN).balance_nanos == -40
    assert "usage beyond its hold" in caplog.text
    assert prove(work) == []


def test_a_batch_without_a_hold_or_with_an_empty_one_settles(work: Work) -> None:
    """No hold is nothing to settle; a hold of nothing settles without a transaction."""
    one = account(work, "one")
    bare, empty = batch(work, one.id), batch(work, one.id)
    assert charge(work, bare.id, 1, 1) is None
    hold(work, empty.id, one.id, 0)
    end = charge(work, empty.id, 0, 0)
    assert end is not None
    assert (end.charged_nanos, end.transaction_id) == (0, None)
    with pytest.raises(InvariantBroken):
        hold(work, bare.id, one.id, -1)
    with pytest.raises(InvariantBroken):
        settle(work, batch_id=empty.id, charge_nanos=-1, lines=0, input_tokens=0, output_tokens=0)
    assert prove(work) == []


def test_a_receipt_shows_the_copied_rates_and_what_returned(work: Work, clock: FrozenClock) -> None:
    """A receipt is settled from the hold's own copy of rates, and another account's is not found."""
    one, other = account(work, "one", credit_nanos=1000), account(work, "other")
    made = batch(work, one.id)
    hold(work, made.id, one.id, 400)
    waiting = reading.receipt(work, made.id, one.id)
    assert (waiting["state"], waiting["hold"], waiting["charged"]) == ("held", "0.000000400", None)

    facts.record(work, batch_id=made.id, account_id=one.id, usage_by_model={CARD["id"]: (1, 3, 4)}, card=CARD)
    charge(work, made.id, 3, 4)
    receipt = reading.receipt(work, made.id, one.id)
    assert receipt["state"] == "settled"
    assert (receipt["charged"], receipt["returned"]) == ("0.000000300", "0.000000100")
    assert receipt["rates"] == {"input_token": "0.000000020", "output_token": "0.000000060"}
    assert (receipt["lines"], receipt["input_tokens"], receipt["output_tokens"]) == (1, 3, 4)
    assert receipt["usage"][0]["amount"] == "0.000000300"
    assert len(receipt["transactions"]) == 2
    for stranger, batch_id in ((other.id, made.id), (one.id, "batch_none")):
        with pytest.raises(NotFound):
            reading.receipt(work, batch_id, stranger)
    assert prove(work) == []


def test_the_proof_sees_a_charge_that_is_off_its_rates(work: Work) -> None:
    """A settlement whose amount is not tokens times rates is reported, to the last nano-credit."""
    one = account(work, "one", credit_nanos=1000)
    made = batch(work, one.id)
    hold(work, made.id, one.id, 400)
    settle(work, batch_id=made.id, charge_nanos=301, lines=1, input_tokens=3, output_tokens=4)
    assert prove(work) == [
        f"batch {made.id} was charged 301 nano-credits and overran by 0, its tokens at its rates come to 300"
    ]


@pytest.mark.thorough
def test_fifty_holds_at_once_against_a_balance_of_seven(database: Engine, clock: FrozenClock) -> None:
    """Exactly seven of fifty parallel holds are placed, the others hear of insufficient credit."""
    with unit_of_work() as work:
        one = account(work, "one", credit_nanos=7 * 100 + 99)
        made = [batch(work, one.id).id for _ in range(50)]

    def try_hold(number: int) -> None:
        with unit_of_work() as work:
            hold(work, made[number], one.id, 100)

    answers = at_once(50, try_hold)
    assert answers.count(None) == 7
    assert sum(isinstance(one, InsufficientCredit) for one in answers) == 43
    with unit_of_work() as work:
        assert balance(work, one.id) == Balances(available_nanos=99, held_nanos=700)
        assert work.session.scalar(select(func.count()).select_from(Hold)) == 7
        assert prove(work) == []


def test_a_batch_held_and_settled_by_many_at_once(database: Engine, clock: FrozenClock) -> None:
    """One batch held by ten and settled by ten, with different charges, has one hold and one settlement."""
    with unit_of_work() as work:
        one = account(work, "one", credit_nanos=10_000)
        made = batch(work, one.id).id

    def try_hold(_: int) -> None:
        with unit_of_work() as work:
            hold(work, made, one.id, 1000)

    def try_settle(number: int) -> int:
        with unit_of_work() as work:
            end = charge(work, made, number, 0)
            assert end is not None
            return end.charged_nanos

    assert at_once(10, try_hold) == [None] * 10
    clock.moment += timedelta(hours=1)
    charged = set(at_once(10, try_settle))
    assert len(charged) == 1
    with unit_of_work() as work:
        assert balance(work, one.id) == Balances(10_000 - charged.pop(), 0)
        kinds = work.session.scalars(select(Transaction.kind).order_by(Transaction.sequence)).all()
        assert kinds == ["grant", "hold", "settle"]
        assert prove(work) == []
