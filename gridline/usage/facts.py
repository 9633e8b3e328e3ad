"""Usage facts: what a batch used of each model (or adapter), written once, when it settles. Moves no money."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from gridline.db.work import Work
from gridline.usage.charging import charge_nanos
from gridline.usage.tables import UsageFact


def record(
    work: Work,
    *,
    batch_id: str,
    account_id: str,
    usage_by_model: Mapping[str, Sequence[int]],
    card: Mapping[str, Any],
) -> None:
    """Write a batch's usage under the UTC day of this unit of work; a second call changes nothing.

    Args:
        work: the unit of work that settles the batch.
        batch_id: whose usage.
        account_id: who used.
        usage_by_model: model or adapter id to delivered lines, input tokens, output tokens.
        card: the copy of rates that the hold was made with; an adapter's rates are its base's.
    """
    rows = [
        {
            "batch_id": batch_id,
            "model": model,
            "account_id": account_id,
            "day": work.now.date(),
            "lines": lines,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "amount_nanos": charge_nanos(card, input_tokens, output_tokens),
        }
        for model, (lines, input_tokens, output_tokens) in sorted(usage_by_model.items())
    ]
    if rows:
        work.session.execute(
            insert(UsageFact).values(rows).on_conflict_do_nothing(index_elements=["batch_id", "model"])
        )


def of_batch(work: Work, batch_id: str) -> Sequence[UsageFact]:
    """What the batch used, by model."""
    return work.session.scalars(
        select(UsageFact).where(UsageFact.batch_id == batch_id).order_by(UsageFact.model)
    ).all()
