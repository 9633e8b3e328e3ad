"""A month's statement: what the account's credit was, every entry that changed it, and the whole as CSV."""

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import figures, live, months, words
from gridline.client import Client, Json
from gridline.money import credits_nanos

if TYPE_CHECKING:
    import pandas as pd


def main() -> None:
    """Draw the page."""
    st.title("Billing", anchor=False)
    month = months.choose(figures.now())
    live.follow(
        lambda client: _load(client, month),
        lambda statement: _draw(statement, month),
        active=lambda _statement: False,
        failed=live.could_not_load,
    )


def _load(client: Client, month: str) -> Json:
    return client.statement(months.days(month))


def _draw(statement: Json, month: str) -> None:
    entries = statement["data"]
    _numbers(statement)
    if not entries:
        st.caption(f"Nothing changed your credits in {months.named(month)}.")
        return
    st.dataframe(
        frame(entries),
        hide_index=True,
        column_config={
            "When (UTC)": st.column_config.TextColumn(width=150),
            "What": st.column_config.TextColumn(width=130),
            "Available": st.column_config.TextColumn(
                alignment="right", width=130, help="What it added to available credits, or took."
            ),
            "Held": st.column_config.TextColumn(
                width=130, alignment="right", help="The same of held credits."
            ),
            "Batch": st.column_config.LinkColumn(width=110, display_text="Open batch"),
            "Why": st.column_config.TextColumn(width="large"),
        },
    )
    st.link_button(
        "Statement as CSV",
        f"/download/statement/{month}",
        icon=":material/download:",
        help="Every entry with the balances that it left, to the last digit.",
    )


def _numbers(statement: Json) -> None:
    opening, closing = (
        sum(credits_nanos(statement[end][book]) for book in ("available", "held"))
        for end in ("opening", "closing")
    )
    charged = -sum(credits_nanos(one["amount"]) for one in statement["data"] if one["kind"] == "settle")
    shown = (
        ("Credits before", opening, "Available and held when the month began."),
        ("Charged", charged, "For delivered lines of batches that ended in this month."),
        ("Added", closing - opening + charged, "Grants, refunds and corrections, together."),
        ("Credits after", closing, "Available and held at its end, or now."),
    )
    for place, (name, nanos, what) in zip(st.columns(len(shown)), shown, strict=True):
        place.metric(name, figures.number(nanos), border=True, help=f"{what} {figures.UNIT_HELP}")


def frame(entries: list[Json]) -> "pd.DataFrame":
    """The entries as a table, newest first."""
    import pandas as pd

    rows = [
        {
            "When (UTC)": f"{figures.instant(one['created_at']):%Y-%m-%d %H:%M:%S}",
            "What": words.entry(one["kind"]),
            "Available": figures.change(one["available_change"]),
            "Held": figures.change(one["held_change"]),
            "Batch": f"/batch?id={one['batch_id']}" if one["batch_id"] else "",
            "Why": one["why"],
        }
        for one in reversed(entries)
    ]
    return pd.DataFrame(rows)


main()
