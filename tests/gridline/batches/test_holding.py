"""``hold_credits``: within the account's credit and its daily limit, whatever comes at once."""

from typing import Any

import pytest
from sqlalchemy import func, select, update

from gridline.batches import moves
from gridline.batches.holding import hold_credits
from gridline.batches.states import Status
from gridline.batches.tables import Batch, RunRequest
from gridline.catalog import cards
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import LimitExceeded
from gridline.keeper.credit import resume_funded
from gridline.ledger import posting, reading, settling
from gridline.ledger.proving import prove
from gridline.ledger.reading import Balances
from gridline.ledger.tables import Hold
from tests.gridline.batches.bench import CREDIT, MODEL, Bench
from tests.gridline.ledger.bench import at_once


def limit(bench: Bench, **values: int) -> None:
    """Change the account's limits, and let it have as many open batches as a test wants."""
    with unit_of_work() as work:
        wanted: dict[str, Any] = {"open_batches_max": 100, **values}
        work.session.execute(update(Account).where(Account.id == bench.account_id).values(**wanted))


def validated(bench: Bench, ceiling_nanos: int, *, window: str = "24h") -> str:
    """A batch that can cost so much and has no hold yet; its id."""
    batch = bench.create(window=window)
    card = cards.catalogue()[MODEL]
    with unit_of_work() as work:
        batch = moves.locked(work, batch.id)
        batch.validated_at = work.now
        batch.model, batch.card, batch.total = card.id, card.copy(), 1
        batch.ceiling_nanos = ceiling_nanos
    return batch.id


def read(batch_id: str) -> Batch:
    """The batch as it is committed."""
    with unit_of_work() as work:
        return work.session.get_one(Batch, batch_id)


def test_a_hold_exactly_at_the_limit_is_placed(bench: Bench) -> None:
    """Three holds that fill the day to the last unit are placed; a free batch still is after that."""
    limit(bench, daily_credits_nanos_max=3 * CREDIT)
    made = [validated(bench, CREDIT) for _ in range(3)]
    free = validated(bench, 0)
    assert [hold_credits(one) for one in made] == ["held"] * 3
    assert hold_credits(free) == "held"


@pytest.mark.parametrize("window", ["24h", "72h"])
def test_a_hold_over_the_limit_ends_the_batch(bench: Bench, window: str) -> None:
    """One unit over it: failed with limit, use, reset and whom to ask with its id; nothing is held, the slot is free."""
    limit(bench, daily_credits_nanos_max=3 * CREDIT)
    first, over = validated(bench, 2 * CREDIT), validated(bench, CREDIT + 1, window=window)
    assert hold_credits(first) == "held"
    assert [hold_credits(over), hold_credits(over)] == ["ended", "ended"]
    batch = read(over)
    assert (batch.status, batch.error_code, batch.errors_total) == ("failed", "limit_exceeded", 1)
    (error,) = batch.errors or []
    assert (error["code"], error["param"], error["line"]) == ("limit_exceeded", None, None)
    for words in (
        "can cost up to 1.000000001 credits",
        "used 2.000000000 of the 3.000000000 credits",
        "So 1.000000000 are left today",
        "resets at 2026-01-06 00:00 UTC",
        "Nothing ran and nothing was charged",
        f"name {over} to ask for a higher limit",
    ):
        assert words in error["message"]
    with unit_of_work() as work:
        assert reading.hold_of(work, over) is None
        assert reading.balance(work, bench.account_id) == Balances(8 * CREDIT, 2 * CREDIT)
        assert work.session.get_one(Account, bench.account_id).open_batches == 1
        assert prove(work) == []


def test_a_deposit_does_not_raise_the_limit_and_midnight_resets_it(bench: Bench) -> None:
    """More credit changes nothing today; tomorrow the same batch is held."""
    limit(bench, daily_credits_nanos_max=CREDIT)
    first, over, tomorrow = (validated(bench, CREDIT, window="72h") for _ in range(3))
    assert hold_credits(first) == "held"
    with unit_of_work() as work:
        posting.grant(work, bench.account_id, 100 * CREDIT, actor="operator", why="deposit", key="more")
    assert hold_credits(over) == "ended"
    bench.clock.advance(hours=12)
    assert hold_credits(tomorrow) == "held"


def test_what_came_back_can_be_held_again(bench: Bench) -> None:
    """A batch that cost a tenth of its hold leaves nine tenths of the day to others."""
    limit(bench, daily_credits_nanos_max=10)
    first, second, third = validated(bench, 10), validated(bench, 9), validated(bench, 1)
    assert hold_credits(first) == "held"
    with unit_of_work() as work:
        settling.settle(work, batch_id=first, charge_nanos=1, lines=1, input_tokens=1, output_tokens=0)
    assert [hold_credits(second), hold_credits(third)] == ["held", "ended"]


def test_credit_that_falls_short_still_parks_and_fails_as_before(bench: Bench) -> None:
    """Within the limit it is the balance that decides: 24h fails, 72h waits for credit."""
    limit(bench, daily_credits_nanos_max=100 * CREDIT)
    day, days = validated(bench, 11 * CREDIT), validated(bench, 11 * CREDIT, window="72h")
    assert [hold_credits(day), hold_credits(days)] == ["ended", "parked"]
    assert read(day).error_code == "insufficient_quota"
    assert read(days).reason_code == "customer_credit"


def test_a_late_copy_holds_nothing_for_a_parked_batch(bench: Bench) -> None:
    """A copy of the task that comes after its run parked and credit was added leaves the batch to the keeper."""
    limit(bench, daily_credits_nanos_max=100 * CREDIT)
    days = validated(bench, 11 * CREDIT, window="72h")
    assert hold_credits(days) == "parked"
    with unit_of_work() as work:
        work.session.execute(update(RunRequest).values(done_at=work.now))
        posting.grant(work, bench.account_id, 10 * CREDIT, actor="operator", why="test", key="second")
    assert hold_credits(days) == "parked"
    assert read(days).waiting == "parked"
    assert resume_funded() == 1
    assert hold_credits(days) == "held"
    assert read(days).waiting is None


def test_holds_at_once_never_exceed_the_limit(bench: Bench) -> None:
    """Of eight holds at the same moment exactly three fit the day; the others end, and the books hold."""
    limit(bench, daily_credits_nanos_max=7)
    made = [validated(bench, 2) for _ in range(8)]
    answers = at_once(8, lambda number: hold_credits(made[number]))
    assert sorted(answers) == ["ended"] * 5 + ["held"] * 3
    with unit_of_work() as work:
        assert work.session.scalar(select(func.sum(Hold.amount_nanos))) == 6
        assert prove(work) == []


def test_holds_and_settlements_at_once_do_not_block_each_other(bench: Bench) -> None:
    """Batches that end while others are held: every one comes through, nothing waits for itself."""
    limit(bench, daily_credits_nanos_max=100)
    ending = [validated(bench, 2) for _ in range(4)]
    assert [hold_credits(one) for one in ending] == ["held"] * 4
    starting = [validated(bench, 2) for _ in range(4)]

    def act(number: int) -> object:
        if number % 2:
            return hold_credits(starting[number // 2])
        with unit_of_work() as work:
            batch = moves.locked(work, ending[number // 2])
            settling.settle(work, batch_id=batch.id, charge_nanos=0, lines=0, input_tokens=0, output_tokens=0)
            moves.move(work, batch, Status.CANCELLING)
            moves.move(work, batch, Status.CANCELLED)
            return "over"

    assert sorted(at_once(8, act)) == ["held"] * 4 + ["over"] * 4


def test_a_create_at_the_limit_makes_nothing(bench: Bench) -> None:
    """It answers with the limit before a slot is taken, but a repeated create still finds its batch."""
    limit(bench, daily_credits_nanos_max=CREDIT)
    file_id = bench.file()
    made = bench.create(key="k", file_id=file_id)
    assert hold_credits(validated(bench, CREDIT)) == "held"
    with pytest.raises(LimitExceeded) as refused:
        bench.create()
    assert (refused.value.limit or {})["name"] == "daily_credits"
    assert bench.create(key="k", file_id=file_id).id == made.id
    with unit_of_work() as work:
        assert work.session.scalar(select(func.count()).select_from(Batch)) == 2
        assert work.session.get_one(Account, bench.account_id).open_batches == 2
