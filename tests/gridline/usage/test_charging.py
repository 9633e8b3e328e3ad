"""What tokens cost, and the facts that are kept of them."""

from datetime import date

import pytest
from sqlalchemy import select

from gridline.db.work import Work
from gridline.errors import InvariantBroken
from gridline.usage import facts
from gridline.usage.charging import charge_nanos
from gridline.usage.tables import UsageFact
from tests.gridline.ledger.bench import CARD, account, batch


def test_a_price_is_tokens_times_rates_exactly() -> None:
    """Whole rates times whole tokens: nothing is rounded, however many tokens there are."""
    assert charge_nanos(CARD, 10**12 + 1, 10**12 + 3) == (10**12 + 1) * 20 + (10**12 + 3) * 60


def test_embeddings_pay_for_input_only() -> None:
    """An embedding model's output is not charged, whatever its card says."""
    assert charge_nanos({**CARD, "kind": "embedding"}, 7, 9) == 7 * 20


@pytest.mark.parametrize(("rate", "tokens"), [(0.5, 1), (-1, 1), (20, -1), (20, 1.0), (True, 1), ("20", 1)])
def test_what_is_not_whole_is_never_charged(rate: int, tokens: int) -> None:
    """A rate or count that is negative or no integer is a bug, not a price."""
    with pytest.raises(InvariantBroken):
        charge_nanos({**CARD, "input_price_nanos": rate}, tokens, 0)


def test_facts_are_written_once_by_day_and_model(work: Work) -> None:
    """Each model's usage is kept under the UTC day of settlement; a second record changes nothing."""
    one = account(work, "one")
    made = batch(work, one.id)
    used = {"base": (2, 10, 20), "ft:a": (1, 3, 4)}
    for times in (1, 7):
        by_model = {model: [times * number for number in numbers] for model, numbers in used.items()}
        facts.record(work, batch_id=made.id, account_id=one.id, usage_by_model=by_model, card=CARD)
    facts.record(work, batch_id=made.id, account_id=one.id, usage_by_model={}, card=CARD)
    kept = facts.of_batch(work, made.id)
    assert [(fact.model, fact.lines, fact.input_tokens, fact.output_tokens) for fact in kept] == [
        ("base", 2, 10, 20),
        ("ft:a", 1, 3, 4),
    ]
    assert [fact.amount_nanos for fact in kept] == [10 * 20 + 20 * 60, 3 * 20 + 4 * 60]
    assert work.session.scalars(select(UsageFact.day).distinct()).all() == [date(2026, 1, 5)]
