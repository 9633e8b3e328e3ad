"""A token that was just made: its text is shown on its page until somebody says that it is kept, and never again."""

import streamlit as st

from dashboard import snippets, visitor
from gridline.client import NewToken

MADE = "made_token"
MADE_WEBHOOK = "made_webhook"
"""Where a page keeps what it shows this once."""


def keep(made: NewToken) -> None:
    """Remember it for this browser's page, until it is dismissed or the page is left."""
    st.session_state[MADE] = made


def shown() -> bool:
    """Draw it, if there is one; whether there is."""
    made: NewToken | None = st.session_state.get(MADE)
    if made is None:
        return False
    with st.container(border=True, key="new-token"):
        st.subheader("Your new token", anchor=False)
        st.write("Copy it now: it is shown this once. Whoever has it can use your account.")
        st.code(made.secret, language=None, wrap_lines=True)
        st.write("Any OpenAI SDK takes it from these two variables:")
        st.code(snippets.environment(visitor.base_url()), language=None, wrap_lines=True)
        st.button("I have kept it", type="primary", key="kept", on_click=_dismiss)
    return True


def _dismiss() -> None:
    st.session_state.pop(MADE, None)
