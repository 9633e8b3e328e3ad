"""The account: its credit, its limits and its monthly budget, and how to reach the API with its token."""

from collections.abc import Callable

import streamlit as st

from dashboard import figures, live, markup, visitor, words
from gridline.client import Account, Client, ClientError


def main() -> None:
    """Draw the page."""
    st.title("Account", anchor=False)
    live.follow(
        lambda client: client.account(), _draw, active=lambda _account: False, failed=live.could_not_load
    )
    _mails()


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
        _budget(account)
    with right.container(border=True, height="stretch"):
        st.subheader("Connect", anchor=False)
        st.write("Point any OpenAI SDK at this base URL, with your token as the API key.")
        st.page_link("screens/tokens.py", label="Make a token", icon=":material/key:")
        base_url = visitor.base_url()
        st.code(base_url, language=None, wrap_lines=True)
        st.code(
            f'from openai import OpenAI\n\nclient = OpenAI(\n    base_url="{base_url}",\n'
            '    api_key="<your token>",\n    timeout=60,\n)',
            language="python",
            wrap_lines=True,
        )


def _budget(account: Account) -> None:
    """What the owner may set; who signed in with a token is told why not."""
    found = visitor.session()
    if found is None or not found.email:
        st.caption("Sign in with e-mail and password to set a monthly budget.")
        return
    now = account.limits.get("monthly_budget")
    with st.form("budget", border=False):
        wanted = st.text_input(
            "Monthly budget, in credits",
            value="" if now is None else str(now.limit).rstrip("0").rstrip("."),
            placeholder="None",
            help="The most that your batches may hold in a UTC month, less what comes back of them. A batch that would "
            "go beyond it fails before anything runs. Leave it empty for no budget.",
        )
        sent = st.form_submit_button("Save the budget", icon=":material/savings:")
    if sent:
        _save(wanted.strip())


def _mails() -> None:
    """Mails about ended batches: for who signed in with an e-mail, after a code that was mailed there came back."""
    found = visitor.session()
    if found is None or not found.email:
        return
    try:
        notices = found.client.mail_notices()
    except ClientError as error:
        visitor.check_refusal(error)
        live.problem("Whether batches are mailed could not be read", error)
        return
    with st.container(border=True):
        st.subheader("Mail when a batch ends", anchor=False)
        if notices.state == "on":
            st.text(f"Mails go to {notices.email}.")
            _press("Stop the mails", "notifications_off", found.client.stop_mails)
        elif notices.state == "off":
            st.text(f"A code is mailed to {notices.email} first, so that nobody is mailed who did not ask.")
            _press("Mail me when a batch ends", "mail", found.client.ask_for_mails)
        else:
            _confirm(found.client, notices.email)


def _confirm(client: Client, email: str) -> None:
    with st.form("mail-code", border=False):
        code = st.text_input("Code", help=f"Eight digits, mailed to {email}. They work for 15 minutes.")
        sent = st.form_submit_button("Confirm", icon=":material/check:")
    if sent:
        _do(lambda: client.confirm_mails(code.strip()))
    with st.container(horizontal=True):
        _press("Mail a new code", "refresh", client.ask_for_mails)
        _press("Not now", "close", client.stop_mails)


def _press(label: str, icon: str, act: Callable[[], object]) -> None:
    if st.button(label, icon=f":material/{icon}:"):
        _do(act)


def _do(act: Callable[[], object]) -> None:
    """Do it and draw the page anew; what was refused is said instead."""
    try:
        act()
    except ClientError as error:
        visitor.check_refusal(error)
        live.problem("This was not done", error)
        return
    st.rerun()


def _save(wanted: str) -> None:
    _do(lambda: visitor.client().set_budget(wanted or None))


main()
