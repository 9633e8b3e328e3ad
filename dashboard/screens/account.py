"""The account: its credit, its limits, and how to reach the API with its token."""

import streamlit as st

from dashboard import figures, live, markup, snippets, words
from gridline.client import Account


def main() -> None:
    """Draw the page."""
    st.title("Account", anchor=False)
    live.follow(
        lambda client: client.account(), _draw, active=lambda _account: False, failed=live.could_not_load
    )


def _draw(account: Account) -> None:
    available, held, total = st.columns(3)
    for place, name, nanos, what in (
        (available, "Available credits", account.available_nanos, figures.UNIT_HELP),
        (held, "Held credits", account.held_nanos, "Set aside for batches that have not ended."),
        (total, "Together", account.available_nanos + account.held_nanos, "Available and held."),
    ):
        place.metric(name, figures.number(nanos), border=True, help=what)
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.subheader("Limits", anchor=False)
        rows = [("Account", account.name), ("Account id", account.id)]
        rows += [(words.limit(name), figures.limit(name, limit)) for name, limit in account.limits.items()]
        markup.draw(markup.facts(rows))
    with right.container(border=True, height="stretch"):
        st.subheader("Connect", anchor=False)
        st.write("Point any OpenAI SDK at this base URL, with your token as the API key.")
        st.code(snippets.base_url(), language=None)
        st.code(
            f'from openai import OpenAI\n\nclient = OpenAI(\n    base_url="{snippets.base_url()}",\n'
            '    api_key="<your token>",\n    timeout=60,\n)',
            language="python",
        )


main()
