"""The sign-in page: a plain form that posts the token to our own route, never through Streamlit."""

from urllib.parse import urlencode

import streamlit as st
from markupsafe import Markup

from dashboard import markup, words
from dashboard.routes import PROBLEM

FORM = Markup("""
<form class="gl-form" method="post" action="/session/in">
  <label for="gl-token">API token</label>
  <input id="gl-token" name="token" type="password" required autofocus autocomplete="current-password"
         maxlength="512" spellcheck="false" placeholder="Paste your token">
  <input type="hidden" name="next" value="{next}">
  <button type="submit">Sign in</button>
</form>""")


def draw(path: str) -> None:
    """Draw the form; after signing in the visitor is back at ``path`` with the query it has now."""
    problem = st.query_params.get(PROBLEM)
    query = {name: value for name, value in st.query_params.items() if name != PROBLEM}
    _, middle, _ = st.columns([1, 1.4, 1])
    with middle, st.container(border=True, key="sign-in"):
        st.html(markup.brand())
        st.subheader("Sign in to your batches", anchor=False)
        if problem:
            markup.draw(markup.callout("red", "error", "Not signed in", words.problem(problem)))
        st.html(str(FORM.format(next=f"/{path}" + (f"?{urlencode(query)}" if query else ""))))
        st.caption(
            "The token stays on the server; your browser keeps only a session cookie. An operator makes tokens "
            "with `gridline ops token`."
        )
