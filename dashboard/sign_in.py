"""The pages for signing in and up: plain forms that post to our own routes, never through Streamlit."""

from urllib.parse import quote, urlencode

import streamlit as st
from markupsafe import Markup

from dashboard import identity, markup, words
from dashboard.entrance import NEXT, PROBLEM, SIGN_UP_PATH, local_path
from gridline.settings import SignUp, settings

CREDENTIALS = Markup("""
  <label for="gl-email">E-mail</label>
  <input id="gl-email" name="email" type="email" required autofocus autocomplete="username" maxlength="254"
         spellcheck="false">
  <label for="gl-password">Password</label>
  <input id="gl-password" name="password" type="password" required maxlength="256" {more}>
""")
HIDDEN = Markup('<input type="hidden" name="next" value="{}">')
SIGN_IN = Markup("""
<form class="gl-form" method="post" action="/session/in">{credentials}{next}<button type="submit">Sign in</button></form>
<details class="gl-other" {open}><summary>Sign in with an API token</summary>
<form class="gl-form" method="post" action="/session/in">
  <label for="gl-token">API token</label>
  <input id="gl-token" name="token" type="password" required autocomplete="off" maxlength="512" spellcheck="false"
         placeholder="Paste your token">
  {next}<button type="submit">Sign in with the token</button>
</form></details>""")
SIGN_UP = Markup("""
<form class="gl-form" method="post" action="/session/up">{credentials}
  <label for="gl-again">Password, once more</label>
  <input id="gl-again" name="again" type="password" required maxlength="256" minlength="12" autocomplete="new-password">
  {next}<button type="submit">Sign up</button>
</form>""")
IDENTITY = Markup("""
<form class="gl-form" method="post" action="{start}">{next}<button type="submit">Sign in with {host}</button></form>""")
OLD = Markup('autocomplete="current-password"')
NEW = Markup('autocomplete="new-password" minlength="12"')
OTHER_PAGE = Markup('<div class="gl-other">{} <a href="{}" target="_self">{}</a></div>')


def draw(path: str) -> None:
    """Draw the form; after signing in the visitor is back at ``path`` with the query it has now."""
    query = {name: value for name, value in st.query_params.items() if name != PROBLEM}
    target = f"/{path}" + (f"?{urlencode(query)}" if query else "")
    problem = st.query_params.get(PROBLEM)
    with _card("Sign in to your batches", "Not signed in"):
        st.html(
            str(
                SIGN_IN.format(
                    credentials=CREDENTIALS.format(more=OLD),
                    next=HIDDEN.format(target),
                    open=Markup("open") if problem == "invalid_api_key" else "",
                )
            )
        )
        _offer_identity(target)
        if settings().sign_up is SignUp.OPEN:
            address = f"{SIGN_UP_PATH}?{NEXT}={quote(target, safe='')}"
            markup.draw(OTHER_PAGE.format("New here?", address, "Sign up"))
        st.caption("Password and token stay on the server; your browser keeps only a session cookie.")


def draw_sign_up() -> None:
    """Draw the form of somebody new; afterwards the visitor is at the page that was asked for first."""
    target = local_path(st.query_params.get(NEXT, "/"))
    if settings().sign_up is SignUp.CLOSED:
        with _card("Sign up", "Not signed up"):
            st.write(words.problem("sign_up_closed"))
            markup.draw(OTHER_PAGE.format("Signed up before?", target, "Sign in"))
        return
    with _card("Sign up", "Not signed up"):
        st.html(str(SIGN_UP.format(credentials=CREDENTIALS.format(more=NEW), next=HIDDEN.format(target))))
        _offer_identity(target)
        markup.draw(OTHER_PAGE.format("Signed up before?", target, "Sign in"))
        st.caption(
            "A password has 12 to 256 characters: a few words together are easy to keep and hard to guess."
        )


def _offer_identity(target: str) -> None:
    """The way in by the identity provider, where there is one; who is new gets an account by it."""
    host = identity.checked_host()
    if host:
        st.html(str(IDENTITY.format(start=identity.START, next=HIDDEN.format(target), host=host)))


def _card(title: str, failed: str) -> "st.delta_generator.DeltaGenerator":
    """The box in the middle, with what did not work last time at its top."""
    _, middle, _ = st.columns([1, 1.4, 1])
    card = middle.container(border=True, key="sign-in")
    card.html(markup.brand())
    card.subheader(title, anchor=False)
    problem = st.query_params.get(PROBLEM)
    if problem:
        card.html(str(markup.callout("red", "error", failed, words.problem(problem))))
    return card
