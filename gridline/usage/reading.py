"""Reads usage facts: what an account used, by UTC day of settlement and by model. Writes nothing."""

from typing import Any

from sqlalchemy import func, select

from gridline.clock import Days
from gridline.db.work import Work
from gridline.money import credits_text
from gridline.usage.tables import UsageFact


def by_day_and_model(work: Work, account_id: str, days: Days) -> list[dict[str, Any]]:
    """What the account used on each of these days of each model, as the API shows it; days without use are left out."""
    rows = work.session.execute(
        select(
            UsageFact.day,
            UsageFact.model,
            func.count(),
            func.sum(UsageFact.lines),
            func.sum(UsageFact.input_tokens),
            func.sum(UsageFact.output_tokens),
            func.sum(UsageFact.amount_nanos),
        )
        .where(UsageFact.account_id == account_id, UsageFact.day.between(days.first, days.last))
        .group_by(UsageFact.day, UsageFact.model)
        .order_by(UsageFact.day, UsageFact.model)
    )
    return [
        {
            "object": "gridline.usage",
            "day": day.isoformat(),
            "model": model,
            "batches": int(batches),
            "lines": int(lines),
            "input_tokens": int(input_tokens),
            "output_tokens": int(output_tokens),
            "amount": credits_text(int(amount)),
        }
        for day, model, batches, lines, input_tokens, output_tokens, amount in rows
    ]
