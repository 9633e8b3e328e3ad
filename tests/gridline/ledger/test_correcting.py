"""Adjusting and refunding: once per key, never below zero, never more than was charged."""

import pytest
from sqlalchemy import Engine, text

from gridline.clock import FrozenClock
from gridline.db.work import Work, unit_of_work
from gridline.errors import InvalidRequest, NotFound
from gridline.ledger import correcting, reading
from gridline.ledger.books import PLATFORM_ADJUSTED, PLATFORM_GRANTED, available, revenue
from gridline.ledger.errors import InsufficientCredit, KeyReused, RefundTooLarge
from gridline.ledger.holding import place
from gridline.ledger.posting import Leg, Posting, post
from gridline.ledger.proving import prove
from gridline.ledger.reading import Balances, balance
from gridline.ledger.settling import settle
from gridline.ledger.tables import Balance, Transaction
from gridline.usage import facts
from tests.gridline.ledger.bench import CARD, account, at_once, batch

WHO = {"actor": "operator:ann", "why": "test"}


def charged(work: Work, account_id: str) -> str:
    """A batch that held 400 and was charged 300 nano-credits."""
    made = batch(work, account_id)
    place(work, batch_id=made.id, account_id=account_id, amount_nanos=400, card=CARD)
    facts.record(
        work, batch_id=made.id, account_id=account_id, usage_by_model={CARD["id"]: (1, 3, 4)}, card=CARD
    )
    settle(work, batch_id=made.id, charge_nanos=300, lines=1, input_tokens=3, output_tokens=4)
    return made.id


def test_an_adjustment_goes_either_way_and_once_per_key(work: Work) -> None:
    """It adds to available credit or takes from it, out of a book of its own, with who and why, once for its key."""
    one = account(work, "one", credit_nanos=100)
    first = correcting.adjust(work, one.id, 50, key="a", **WHO)
    assert correcting.adjust(work, one.id, 50, key="a", **WHO) == first
    correcting.adjust(work, one.id, -150, key="b", **WHO)
    assert balance(work, one.id) == Balances(available_nanos=0, held_nanos=0)
    assert work.session.get_one(Balance, PLATFORM_ADJUSTED).balance_nanos == 100
    assert work.session.get_one(Balance, PLATFORM_GRANTED).balance_nanos == -100
    stored = work.session.get_one(Transaction, first)
    assert (stored.kind, stored.actor, stored.why, stored.at) == ("adjust", "operator:ann", "test", work.now)
    for amount in (51, -50):
        with pytest.raises(KeyReused):
            correcting.adjust(work, one.id, amount, key="a", **WHO)
    with pytest.raises(InvalidRequest):
        correcting.adjust(work, one.id, 0, key="c", **WHO)
    assert prove(work) == []


def test_an_adjustment_never_takes_what_is_not_there(work: Work) -> None:
    """Held credit is out of reach: the refusal says what is available and needed, and nothing is posted."""
    one = account(work, "one", credit_nanos=100)
    made = batch(work, one.id)
    place(work, batch_id=made.id, account_id=one.id, amount_nanos=60, card=CARD)
    with pytest.raises(InsufficientCredit) as refused:
        correcting.adjust(work, one.id, -41, key="a", **WHO)
    assert (refused.value.available_nanos, refused.value.needed_nanos) == (40, 41)
    assert refused.value.limit == {"available": "0.000000040", "needed": "0.000000041"}
    assert "Take less" in refused.value.message
    assert balance(work, one.id) == Balances(available_nanos=40, held_nanos=60)
    correcting.adjust(work, one.id, -40, key="a", **WHO)
    assert balance(work, one.id).available_nanos == 0


def test_a_platform_without_the_book_gets_it(database: Engine, clock: FrozenClock, owner: Engine) -> None:
    """Books that were opened before there were adjustments take one."""
    with unit_of_work() as work:
        one = account(work, "one")
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM balances WHERE book = 'platform:adjusted'"))
    with unit_of_work() as work:
        correcting.adjust(work, one.id, 5, key="a", **WHO)
        assert balance(work, one.id).available_nanos == 5


def test_refunds_together_are_at_most_the_charge(work: Work) -> None:
    """A charge is given back in parts and to the last unit, out of revenue; the batch still looks rightly charged."""
    one = account(work, "one", credit_nanos=1000)
    made = charged(work, one.id)
    first = correcting.refund(work, made, 100, key="a", **WHO)
    assert correcting.refund(work, made, 100, key="a", **WHO) == first
    with pytest.raises(RefundTooLarge, match=r"at most 0.000000200 can be refunded, not 0.000000201"):
        correcting.refund(work, made, 201, key="b", **WHO)
    correcting.refund(work, made, 200, key="b", **WHO)
    with pytest.raises(RefundTooLarge):
        correcting.refund(work, made, 1, key="c", **WHO)
    assert balance(work, one.id) == Balances(available_nanos=1000, held_nanos=0)
    assert reading.revenue_nanos(work) == 0
    receipt = reading.receipt(work, made, one.id)
    assert (receipt["charged"], receipt["refunded"]) == ("0.000000300", "0.000000300")
    assert len(receipt["transactions"]) == 4
    assert receipt["transactions"][2] == first
    assert prove(work) == []


def test_a_refund_is_of_one_batch_and_amount(work: Work) -> None:
    """A key names one refund; without a charge, or an amount, there is nothing to refund."""
    one = account(work, "one", credit_nanos=2000)
    made, other = charged(work, one.id), charged(work, one.id)
    correcting.refund(work, made, 100, key="a", **WHO)
    for batch_id, amount in ((made, 99), (other, 100)):
        with pytest.raises(KeyReused):
            correcting.refund(work, batch_id, amount, key="a", **WHO)
    with pytest.raises(InvalidRequest):
        correcting.refund(work, made, 0, key="b", **WHO)
    waiting = batch(work, one.id)
    place(work, batch_id=waiting.id, account_id=one.id, amount_nanos=10, card=CARD)
    for batch_id in (waiting.id, "batch_none"):
        with pytest.raises(NotFound, match="was not charged"):
            correcting.refund(work, batch_id, 1, key="c", **WHO)
    assert reading.refunded(work, other) == 0


def test_refunds_at_once_never_exceed_the_charge(database: Engine, clock: FrozenClock) -> None:
    """Of twelve refunds of 40 at the same moment seven fit into a charge of 300, under whatever keys."""
    with unit_of_work() as work:
        one = account(work, "one", credit_nanos=1000)
        made = charged(work, one.id)

    def give_back(number: int) -> None:
        with unit_of_work() as work:
            correcting.refund(work, made, 40, key=str(number), **WHO)

    answers = at_once(12, give_back)
    assert answers.count(None) == 7
    assert sum(isinstance(one, RefundTooLarge) for one in answers) == 5
    with unit_of_work() as work:
        assert reading.refunded(work, made) == 280
        assert balance(work, one.id).available_nanos == 980
        assert prove(work) == []


def test_one_refund_sent_by_many_is_made_once(database: Engine, clock: FrozenClock) -> None:
    """Ten equal refunds under one key give back once, all of them well."""
    with unit_of_work() as work:
        one = account(work, "one", credit_nanos=1000)
        made = charged(work, one.id)

    def give_back(_: int) -> str:
        with unit_of_work() as work:
            return correcting.refund(work, made, 300, key="once", **WHO)

    assert len(set(at_once(10, give_back))) == 1
    with unit_of_work() as work:
        assert reading.refunded(work, made) == 300


def test_a_refund_beyond_its_charge_is_found(work: Work) -> None:
    """Were more given back than a batch was charged, the proof names the batch and both amounts."""
    one = account(work, "one", credit_nanos=1_000)
    made = charged(work, one.id)
    legs = (Leg(revenue(made), -301), Leg(available(one.id), 301))
    posting = Posting("txn_" + "x" * 24, one.id, "refund", legs, batch_id=made, **WHO)
    assert post(work, posting)
    assert prove(work) == [f"batch {made} was charged 300 nano-credits, 301 of them were refunded"]
