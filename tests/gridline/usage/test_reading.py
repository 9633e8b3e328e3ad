"""Usage by day and model, and what is likely written."""

from datetime import UTC, date, datetime, timedelta

from sqlalchemy import update

from gridline.batches.tables import Batch
from gridline.clock import Days
from gridline.db.work import Work
from gridline.ledger.holding import place
from gridline.usage import facts, likely
from gridline.usage.likely import DEFAULT, Share, share
from gridline.usage.reading import by_day_and_model
from tests.gridline.ledger.bench import CARD, account, batch

MODEL = CARD["id"]


def settled(work: Work, account_id: str, *, possible: int, written: int, status: str = "completed") -> None:
    """A batch of one line with ten input tokens that could write so much, and wrote so much."""
    made = batch(work, account_id)
    place(
        work,
        batch_id=made.id,
        account_id=account_id,
        amount_nanos=10 * CARD["input_price_nanos"] + possible * CARD["output_price_nanos"],
        card=CARD,
    )
    used = {MODEL: (1, 10, written)}
    facts.record(work, batch_id=made.id, account_id=account_id, usage_by_model=used, card=CARD)
    work.session.execute(
        update(Batch).where(Batch.id == made.id).values({"status": status, "input_tokens_estimate": 10})
    )


def test_usage_is_summed_by_day_and_model(work: Work) -> None:
    """Batches of a day and model are one row; other days, models and accounts keep theirs."""
    one, other = account(work, "one"), account(work, "other")
    for used in ({"m": (1, 2, 3)}, {"m": (4, 5, 6), "ft:m": (1, 1, 1)}):
        made = batch(work, one.id)
        facts.record(work, batch_id=made.id, account_id=one.id, usage_by_model=used, card=CARD)
    made = batch(work, other.id)
    facts.record(work, batch_id=made.id, account_id=other.id, usage_by_model={"m": (9, 9, 9)}, card=CARD)
    work.now = datetime(2026, 1, 6, 0, 0, tzinfo=UTC)
    made = batch(work, one.id)
    facts.record(work, batch_id=made.id, account_id=one.id, usage_by_model={"m": (1, 0, 0)}, card=CARD)

    monday, tuesday = date(2026, 1, 5), date(2026, 1, 6)
    shown = by_day_and_model(work, one.id, Days(monday, tuesday))
    assert [(row["day"], row["model"], row["batches"], row["lines"]) for row in shown] == [
        ("2026-01-05", "ft:m", 1, 1),
        ("2026-01-05", "m", 2, 5),
        ("2026-01-06", "m", 1, 1),
    ]
    assert (shown[1]["input_tokens"], shown[1]["output_tokens"]) == (7, 9)
    assert shown[1]["amount"] == "0.000000680"
    assert by_day_and_model(work, one.id, Days(tuesday, tuesday)) == shown[2:]
    assert by_day_and_model(work, one.id, Days(date(2026, 1, 7), date(2026, 2, 1))) == []


def test_likely_is_the_accounts_own_history_then_everybodys_then_half(work: Work) -> None:
    """An account's completed batches speak for it; without any, all accounts' do; without any, half is said."""
    one, other = account(work, "one", credit_nanos=10**6), account(work, "other", credit_nanos=10**6)
    assert share(work, one.id, MODEL) == DEFAULT == Share(1, 2, "default")
    settled(work, other.id, possible=100, written=80)
    assert share(work, one.id, MODEL) == Share(80, 100, "platform")
    settled(work, one.id, possible=100, written=10)
    settled(work, one.id, possible=300, written=50)
    assert share(work, one.id, MODEL) == Share(60, 400, "account")
    assert share(work, one.id, "another-model") == DEFAULT


def test_only_completed_batches_speak(work: Work) -> None:
    """Of a cancelled or expired batch much never ran: it says nothing of how much is written."""
    one = account(work, "one", credit_nanos=10**6)
    for status in ("cancelled", "expired", "failed"):
        settled(work, one.id, possible=100, written=1, status=status)
    assert share(work, one.id, MODEL) == DEFAULT


def test_the_newest_batches_speak(work: Work) -> None:
    """Only so many are looked at, from the newest day on."""
    one = account(work, "one", credit_nanos=10**9)
    settled(work, one.id, possible=1000, written=1000)
    work.now += timedelta(days=1)
    for _ in range(likely.BATCHES_LOOKED_AT):
        settled(work, one.id, possible=100, written=20)
    assert share(work, one.id, MODEL) == Share(1000, 5000, "account")


def test_a_share_is_rounded_up_and_never_above_all() -> None:
    """A likely number is whole, at least what the share says, at most everything."""
    assert Share(1, 3, "account").of(10) == 4
    assert Share(1, 3, "account").of(0) == 0
    assert Share(7, 3, "account").of(10) == 10
