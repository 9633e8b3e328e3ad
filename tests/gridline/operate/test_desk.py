"""What operators do on their pages, at the same moment: once is once, whoever was first."""

import pytest
from sqlalchemy import Engine, select

from gridline.batches.tables import Batch, RunRequest
from gridline.clock import FrozenClock
from gridline.customers.tables import Account, Audit
from gridline.db.work import Work, unit_of_work
from gridline.ledger import reading
from gridline.ledger.proving import prove
from gridline.operate import crediting
from gridline.operate.accounts import Limits
from gridline.operate.desk import accounts, acting
from tests.gridline.ledger import bench

CLICKS = 4
ADA = "operator:ada"


@pytest.fixture
def rows(database: Engine, clock: FrozenClock) -> tuple[str, str]:
    """An account and its batch."""
    with unit_of_work() as work:
        account_id = bench.account(work, "acme").id
        return account_id, bench.batch(work, account_id).id


def audited(work: Work, action: str) -> list[str]:
    """Who did this."""
    return list(work.session.scalars(select(Audit.actor).where(Audit.action == action)))


def test_a_grant_clicked_four_times_at_once_is_given_once(rows: tuple[str, str]) -> None:
    """One click posts and is recorded; the others find that, and say so."""

    def click(number: int) -> bool:
        with unit_of_work() as work:
            return crediting.grant(work, rows[0], 5, actor=ADA, why="a gift", key="k")

    assert sorted(bench.at_once(CLICKS, click)) == [False, False, False, True]
    with unit_of_work() as work:
        assert reading.balance(work, rows[0]).available_nanos == 5
        assert audited(work, "account.grant") == [ADA]
        assert prove(work) == []


def test_limits_changed_at_once_are_changed_once(rows: tuple[str, str]) -> None:
    """Of equal changes one is made; of different ones the first, and the others read that something has changed."""
    with unit_of_work() as work:
        seen = accounts.limits_of(work.session.get_one(Account, rows[0]))

    def change(leases: int) -> bool:
        wanted = Limits(
            open_batches=seen.open_batches,
            leases=leases,
            daily_credits_nanos=seen.daily_credits_nanos,
            requests_per_minute=seen.requests_per_minute,
        )
        with unit_of_work() as work:
            return accounts.change_limits(work, rows[0], wanted, seen=seen, actor=ADA, why="asked for")

    answers = bench.at_once(CLICKS, lambda number: change(10 + number))
    assert [one for one in answers if isinstance(one, bool)] == [True]
    assert {type(one).__name__ for one in answers} == {"bool", "Conflict"}
    won = 10 + answers.index(True)
    assert bench.at_once(CLICKS, lambda number: change(won)) == [False] * CLICKS
    with unit_of_work() as work:
        assert audited(work, "account.limits") == [ADA]
        assert work.session.get_one(Account, rows[0]).leases_max == won


def test_a_run_is_asked_for_and_a_batch_cancelled_once(rows: tuple[str, str]) -> None:
    """One ask reaches the keeper's outbox, one cancel the audit."""

    def ask(number: int) -> bool:
        with unit_of_work() as work:
            return acting.ask_for_run(work, rows[1], asked=0, actor=ADA)

    def cancel(number: int) -> bool:
        with unit_of_work() as work:
            return acting.cancel(work, rows[1], actor=ADA, why="asked for")

    assert sorted(bench.at_once(CLICKS, ask)) == [False, False, False, True]
    assert sorted(bench.at_once(CLICKS, cancel)) == [False, False, False, True]
    with unit_of_work() as work:
        assert len(work.session.scalars(select(RunRequest)).all()) == 1
        assert work.session.get_one(Batch, rows[1]).status == "cancelling"
        assert audited(work, "batch.run_asked") == [ADA]
        assert audited(work, "batch.operator_cancel") == [ADA]
