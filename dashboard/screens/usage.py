"""A month's usage: what was delivered and charged, by UTC day and model."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard import figures, live, months
from gridline.client import Json
from gridline.money import credits_nanos

if TYPE_CHECKING:
    import pandas as pd


def main() -> None:
    """Draw the page."""
    st.title("Usage", anchor=False)
    month = months.choose(figures.now())
    live.follow(
        lambda client: client.usage(months.days(month)),
        lambda used: _draw(used, month),
        active=lambda _used: False,
        failed=live.could_not_load,
    )


def _draw(used: Sequence[Json], month: str) -> None:
    totals = _by_model(used)
    _numbers(totals)
    if not used:
        st.caption(
            f"No batch ended in {months.named(month)} with lines to charge. Usage counts on the day a batch ends."
        )
        return
    with st.container(border=True):
        st.subheader("Charged credits by UTC day", anchor=False)
        st.bar_chart(by_day(used, month), height=260, x_label="Day of the month", y_label=figures.UNIT)
    with st.container(border=True):
        st.subheader("By model", anchor=False)
        st.dataframe(by_model(totals), hide_index=True)


def _numbers(totals: dict[str, dict[str, int]]) -> None:
    shown = (("Charged credits", "nanos"), ("Delivered lines", "lines"), ("Tokens in", "input_tokens"),
             ("Tokens out", "output_tokens"))  # fmt: skip
    for place, (name, kind) in zip(st.columns(len(shown)), shown, strict=True):
        total = sum(one[kind] for one in totals.values())
        place.metric(name, figures.number(total) if kind == "nanos" else f"{total:,}", border=True)


def _by_model(used: Sequence[Json]) -> dict[str, dict[str, int]]:
    totals: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for one in used:
        totals[one["model"]]["nanos"] += credits_nanos(one["amount"])
        for kind in ("lines", "input_tokens", "output_tokens"):
            totals[one["model"]][kind] += one[kind]
    return totals


def by_model(totals: dict[str, dict[str, int]]) -> "pd.DataFrame":
    """One row a model, the dearest first; amounts to the last digit."""
    import pandas as pd

    rows: list[dict[str, Any]] = [
        {
            "Model": model,
            "Delivered lines": one["lines"],
            "Tokens in": one["input_tokens"],
            "Tokens out": one["output_tokens"],
            "Charged (credits)": figures.number(one["nanos"]),
        }
        for model, one in sorted(totals.items(), key=lambda item: -item[1]["nanos"])
    ]
    return pd.DataFrame(rows)


def by_day(used: Sequence[Json], month: str) -> "pd.DataFrame":
    """Charged credits of every day of the month, a column a model: for the eye, so as numbers a chart can draw."""
    import pandas as pd

    days = months.days(month)
    table = pd.DataFrame(
        0.0,
        index=[f"{one:%d}" for one in pd.date_range(days["from"], days["to"])],
        columns=sorted({one["model"] for one in used}),
    )
    for one in used:
        table.loc[one["day"][-2:], one["model"]] += float(one["amount"])
    return table


main()
