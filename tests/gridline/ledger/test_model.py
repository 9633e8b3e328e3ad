"""The ledger against a model of it: whatever is granted, held and settled, in any order and twice."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from gridline import ids
from gridline.clock import FrozenClock
from gridline.db.work import Work, unit_of_work
from gridline.ledger.errors import InsufficientCredit
from gridline.ledger.holding import place
from gridline.ledger.posting import grant
from gridline.ledger.proving import prove
from gridline.ledger.reading import Balances, balance
from gridline.ledger.settling import settle
from tests.gridline.ledger.bench import CARD, account, batch

BATCHES = 3
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grant"), st.integers(0, 2), st.integers(1, 500)),
        st.tuples(st.just("hold"), st.integers(0, BATCHES - 1), st.integers(0, 800)),
        st.tuples(st.just("settle"), st.integers(0, BATCHES - 1), st.integers(0, 40)),
    ),
    max_size=15,
)


class Model:
    """Twenty lines that say what the books must say."""

    def __init__(self) -> None:
        self.available = self.held = 0
        self.granted: set[int] = set()
        self.holds: dict[int, int] = {}
        self.settled: set[int] = set()

    def grant(self, key: int, amount: int) -> None:
        """Credit once per key."""
        self.available += 0 if key in self.granted else amount
        self.granted.add(key)

    def hold(self, which: int, amount: int) -> bool:
        """Set aside once, if it is covered."""
        if which not in self.holds and amount > self.available:
            return False
        if which not in self.holds:
            self.holds[which] = amount
            self.available, self.held = self.available - amount, self.held + amount
        return True

    def settle(self, which: int, charge: int) -> None:
        """Charge at most the hold, return the rest, once."""
        if which in self.holds and which not in self.settled:
            self.settled.add(which)
            self.held -= self.holds[which]
            self.available += self.holds[which] - min(charge, self.holds[which])


def step(work: Work, model: Model, account_id: str, batches: list[str], action: tuple[str, int, int]) -> None:
    """One step on both; an answer must agree at once, the balances after."""
    kind, which, number = action
    if kind == "grant":
        # One amount for one key: what another amount does is test_posting's to say.
        grant(work, account_id, 100 + which, actor="operator", why="test", key=str(which))
        model.grant(which, 100 + which)
    elif kind == "hold":
        try:
            place(work, batch_id=batches[which], account_id=account_id, amount_nanos=number, card=CARD)
            placed = True
        except InsufficientCredit:
            placed = False
        assert placed == model.hold(which, number)
    else:
        tokens = {"lines": 1, "input_tokens": number, "output_tokens": 0}
        settle(work, batch_id=batches[which], charge_nanos=number * 20, **tokens)
        model.settle(which, number * 20)


def play(steps: list[tuple[str, int, int]]) -> None:
    """A history of a new account: after every step model and books say the same, and the proof finds nothing."""
    model = Model()
    with unit_of_work() as work:
        one = account(work, ids.new("account"))
        batches = [batch(work, one.id).id for _ in range(BATCHES)]
        for action in steps:
            step(work, model, one.id, batches, action)
            assert balance(work, one.id) == Balances(model.available, model.held)
        assert prove(work) == []


def few(examples: int) -> settings:
    """Hypothesis with one database for all examples."""
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


@pytest.mark.thorough
@few(8)
@given(steps=STEPS)
def test_the_books_follow_the_model(
    database: Engine, clock: FrozenClock, steps: list[tuple[str, int, int]]
) -> None:
    """A few random histories end as the model says."""
    play(steps)


@pytest.mark.deep
@few(300)
@given(steps=STEPS)
def test_the_books_follow_the_model_for_long(
    database: Engine, clock: FrozenClock, steps: list[tuple[str, int, int]]
) -> None:
    """Very many random histories end as the model says."""
    play(steps)
