"""Every run of every page starts here: who is signed in, then the page that the address names."""

from pathlib import Path

import streamlit as st
from markupsafe import Markup

from dashboard import markup, sign_in, visitor
from dashboard.new_token import MADE, MADE_WEBHOOK
from dashboard.sessions import Session

HERE = Path(__file__).parent
PUBLIC = frozenset({"pricing"})
"""Pages that anybody may see; they show nothing of any account."""
SHOWN_ONCE = {"tokens": MADE, "webhooks": MADE_WEBHOOK}
"""By page: where the session keeps the secret that it has just shown."""
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
    page = st.navigation(_pages(), position="hidden" if who is None else "sidebar")
    for name, key in SHOWN_ONCE.items():
        # A new secret is kept for its page alone, and for no longer than somebody is there.
        if page.url_path != name or who is None:
            st.session_state.pop(key, None)
    if who is None:
        if page.url_path in PUBLIC:
            page.run()
            return
        if page.url_path == "sign_up":
            sign_in.draw_sign_up()
        else:
            sign_in.draw(page.url_path)
        st.page_link("screens/pricing.py", label="What it costs", icon=":material/sell:")
        return
    _sidebar(who)
    page.run()


def _pages() -> list[st.Page]:
    """Every page, in the sidebar's order. Not in sections: Streamlit's are no list to a screen reader."""
    return [
        st.Page(HERE / "screens/overview.py", title="Overview", icon=":material/home:", default=True),
        st.Page(HERE / "screens/batches.py", title="Batches", icon=":material/stacks:"),
        st.Page(HERE / "screens/new_batch.py", title="New batch", icon=":material/add_circle:"),
        st.Page(HERE / "screens/files.py", title="Files", icon=":material/draft:"),
        st.Page(HERE / "screens/fine_tuned.py", title="Fine-tuned models", icon=":material/tune:"),
        # Reached from the list and by links: /batch?id=<batch id>.
        st.Page(HERE / "screens/batch.py", title="Batch", url_path="batch", visibility="hidden"),
        st.Page(HERE / "screens/sign_up.py", title="Sign up", visibility="hidden"),
        st.Page(HERE / "screens/usage.py", title="Usage", icon=":material/bar_chart:"),
        st.Page(HERE / "screens/billing.py", title="Billing", icon=":material/receipt_long:"),
        st.Page(HERE / "screens/pricing.py", title="Pricing", icon=":material/sell:"),
        st.Page(HERE / "screens/account.py", title="Account", icon=":material/account_balance_wallet:"),
        st.Page(HERE / "screens/tokens.py", title="API tokens", icon=":material/key:"),
        st.Page(HERE / "screens/webhooks.py", title="Webhooks", icon=":material/webhook:"),
        st.Page(HERE / "screens/contact.py", title="Write to the operator", icon=":material/mail:"),
    ]


def _sidebar(who: Session) -> None:
    with st.sidebar:
        markup.draw(WHO.format(who.email or who.account_name or who.account_id))
        st.html(SIGN_OUT)


main()
