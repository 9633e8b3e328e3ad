"""Every run of every page starts here: who is signed in, then the page that the address names."""

from pathlib import Path

import streamlit as st
from markupsafe import Markup

from dashboard import markup, sign_in, visitor
from dashboard.sessions import Session

HERE = Path(__file__).parent
WHO = Markup('<div class="gl-muted">Signed in as</div><div class="gl-clip"><b>{}</b></div>')
SIGN_OUT = (
    '<form method="post" action="/session/out"><button class="gl-out" type="submit">Sign out</button></form>'
)


def main() -> None:
    """Gate, navigation, page."""
    st.set_page_config(
        page_title="Gridline", page_icon=str(HERE / "icon.png"), layout="wide", initial_sidebar_state=220
    )
    st.logo(str(HERE / "logo.svg"), size="large")
    st.html(HERE / "style.css")
    who = visitor.session()
    page = st.navigation(
        [
            st.Page(HERE / "screens/batches.py", title="Batches", icon=":material/stacks:", default=True),
            st.Page(HERE / "screens/account.py", title="Account", icon=":material/account_balance_wallet:"),
            # Reached from the list and by links: /batch?id=<batch id>.
            st.Page(HERE / "screens/batch.py", title="Batch", url_path="batch", visibility="hidden"),
        ],
        position="hidden" if who is None else "sidebar",
    )
    if who is None:
        sign_in.draw(page.url_path)
        return
    _sidebar(who)
    page.run()


def _sidebar(who: Session) -> None:
    with st.sidebar:
        markup.draw(WHO.format(who.account_name or who.account_id))
        st.html(SIGN_OUT)


main()
