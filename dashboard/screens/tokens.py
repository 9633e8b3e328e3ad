"""The account's API tokens: make one, see when each was last used, revoke it. Only a signed-in user may."""

from datetime import datetime

import streamlit as st
from markupsafe import Markup

from dashboard import figures, live, markup, new_token, visitor, words
from gridline.client import ClientError, Token

SCOPES = ("read", "routing:write")
NAME_CHARS_MAX = 100
WIDTHS = (2.6, 2.2, 1.1, 1.1, 1.1)
HEADS = ("Token", "It may", "Made", "Last used", "")
HEAD = Markup('<div class="gl-head">{}</div>')
NAMED = Markup('<div class="gl-clip" title="{}"><b>{}</b></div><div class="gl-mono gl-muted">{}</div>')
MUTED = Markup('<div class="gl-muted">{}</div>')


def main() -> None:
    """Draw the page."""
    st.title("API tokens", anchor=False)
    found = visitor.session()
    if found is not None and not found.email:
        text = (
            "You signed in with an API token, and a token can neither make, list nor revoke tokens. Sign out, then sign "
            "in with e-mail and password. Without a user of your own, ask the operator: gridline ops token."
        )
        markup.draw(markup.callout("gray", "key_off", "This needs a password", text))
        return
    if not new_token.shown():
        _create()
    live.follow(
        lambda client: client.tokens(), _draw, active=lambda _tokens: False, failed=live.could_not_load
    )


def _create() -> None:
    with st.form("create-token"):
        name = st.text_input("Name", max_chars=NAME_CHARS_MAX, placeholder="What is it for?")
        scopes = st.multiselect(
            "It may", SCOPES, default=SCOPES, format_func=words.scope, placeholder="Choose at least one"
        )
        sent = st.form_submit_button("Make a token", type="primary", icon=":material/add:")
    if not sent:
        return
    if not name.strip() or not scopes:
        st.warning("Give the token a name, and choose what it may do.", icon=":material/edit:")
        return
    try:
        made = visitor.client().create_token(name.strip(), scopes)
    except ClientError as error:
        visitor.check_refusal(error)
        live.problem("No token was made", error)
        return
    new_token.keep(made)
    st.rerun()


def _draw(tokens: tuple[Token, ...]) -> None:
    if not tokens:
        st.caption("No tokens yet. Programs need one to send batches; this page needs none.")
        return
    at = figures.now()
    with st.container(border=True, gap=None, key="tokens"):
        with st.container(key="token-heads"):
            for place, head in zip(st.columns(WIDTHS), HEADS, strict=True):
                place.html(str(HEAD.format(head)))
        for token in tokens:
            _row(token, at)


def _row(token: Token, at: datetime) -> None:
    with st.container(key=f"row-{token.id}"):
        named, may, made, used, action = st.columns(WIDTHS, vertical_alignment="center")
        by = " · made by the operator" if token.created_by == "operator" else ""
        named.html(str(NAMED.format(token.name, token.name, token.shown + by)))
        may.html(str(MUTED.format(" · ".join(words.scope(one) for one in token.scopes))))
        made.html(str(MUTED.format(_when("Made", token.created_at, at))))
        used.html(str(MUTED.format(_when("Used", token.last_used_at, at, "never used"))))
        with action:
            _revoke(token)


def _when(verb: str, moment: datetime | None, at: datetime, otherwise: str = "") -> Markup | str:
    label = Markup('<span class="gl-narrow">{} </span>').format(verb)
    return otherwise if moment is None else label + markup.time(moment, at)


def _revoke(token: Token) -> None:
    """A button, and before it takes effect what it does."""
    with st.popover("Revoke", icon=":material/block:", width="stretch", key=f"ask-{token.id}"):
        st.write("Programs that use it are refused within 5 seconds. It cannot be undone.")
        if st.button("Revoke it now", type="primary", key=f"revoke-{token.id}"):
            try:
                visitor.client().revoke_token(token.id)
            except ClientError as error:
                visitor.check_refusal(error)
                live.problem("It could not be revoked", error)
            else:
                st.rerun()


main()
