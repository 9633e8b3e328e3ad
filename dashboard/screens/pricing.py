"""What it costs, for anybody: every listed model's rates, what a credit is worth, the limits of a new account."""

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import figures, live, markup, visitor, words
from gridline.client import Client, ClientError, Json, Limit, extension_of
from gridline.settings import settings

if TYPE_CHECKING:
    import pandas as pd


def main() -> None:
    """Draw the page; it asks without any token, whoever looks."""
    if visitor.session() is None:
        st.page_link("screens/overview.py", label="Sign in", icon=":material/login:")
    st.title("Pricing", anchor=False)
    try:
        with Client(settings().reachable_api_url) as client:
            prices = client.pricing()
    except ClientError as error:
        live.could_not_load(error)
        return
    _draw(prices)


def _draw(prices: Json) -> None:
    st.write(
        f"1 credit is worth {prices['credit']['usd']} USD. Only the tokens of delivered lines are charged: a line that fails "
        "and a batch that waits cost nothing. Both completion windows cost the same."
    )
    with st.container(border=True):
        st.subheader("Models", anchor=False)
        if prices["models"]:
            st.dataframe(models(prices["models"]), hide_index=True)
            st.caption("Credits per million tokens. A fine-tuned model costs what its base costs.")
        else:
            st.caption("No model is listed yet: an operator qualifies each before it can be used.")
    packs, bounds = st.columns(2)
    with packs.container(border=True, height="stretch"):
        st.subheader("Credits", anchor=False)
        st.write(
            "Credits are prepaid. Ask the operator for a pack; it is in your account as soon as it is granted."
        )
        markup.draw(
            markup.facts(
                (f"{figures.trimmed(one['credits'])} credits", f"{one['usd']} USD") for one in prices["packs"]
            )
        )
    with bounds.container(border=True, height="stretch"):
        st.subheader("Limits of a new account", anchor=False)
        markup.draw(markup.facts((words.limit(one["name"]), _bound(one)) for one in prices["limits"]))


def _bound(one: Json) -> str:
    shown = figures.limit(one["name"], Limit(one["limit"], None))
    return shown if one["unit"] in ("bytes", "credits") else f"{shown} {one['unit']}"


def models(listed: list[Json]) -> "pd.DataFrame":
    """The models as a table, by name."""
    import pandas as pd

    rows = []
    for one in sorted(listed, key=lambda model: str(model["id"])):
        told = extension_of(one)
        price = {
            way: figures.trimmed(told["prices"][way]["credits_per_million_tokens"])
            for way in ("input", "output")
        }
        rows.append(
            {
                "Model": one["id"],
                "For": "Chat" if told["kind"] == "chat" else "Embeddings",
                "Input": price["input"],
                "Output": price["output"] if told["kind"] == "chat" else "",
                "Context (tokens)": f"{told['context_tokens']:,}",
                "Licence": told["licence"],
            }
        )
    return pd.DataFrame(rows)


main()
