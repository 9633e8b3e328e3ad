"""The account's webhooks: which addresses hear of ended batches, whether they take it, and their secrets."""

from typing import TYPE_CHECKING, Any

import streamlit as st
from markupsafe import Markup

from dashboard import figures, live, markup, visitor, words
from dashboard.new_token import MADE_WEBHOOK
from gridline.client import Client, ClientError, Json

if TYPE_CHECKING:
    import pandas as pd

EVENTS = ("batch.completed", "batch.failed", "batch.expired", "batch.cancelled")
URL_CHARS_MAX = 2_048
DELIVERIES = 10
URL = Markup('<div class="gl-strong gl-clip" title="{}">{}</div>')
VERIFY = """event = client.webhooks.unwrap(request.get_data(), request.headers, secret="<the secret>")
print(event.type, event.data.id)"""
Loaded = list[tuple[Json, tuple[Json, ...]]]


def main() -> None:
    """Draw the page."""
    st.title("Webhooks", anchor=False)
    if not _secret():
        _create()
    live.follow(_load, _draw, active=lambda _found: False, failed=live.could_not_load)


def _secret() -> bool:
    """The secret that was just made, this once; whether there is one."""
    made = st.session_state.get(MADE_WEBHOOK)
    if made is None:
        return False
    with st.container(border=True):
        st.subheader("The signing secret", anchor=False)
        st.write("Copy it now: it is shown this once. With it your receiver knows that an event is ours.")
        st.code(made, language=None, wrap_lines=True)
        st.code(VERIFY, language="python", wrap_lines=True)
        st.button("I have kept it", type="primary", key="kept", on_click=_dismiss)
    return True


def _dismiss() -> None:
    st.session_state.pop(MADE_WEBHOOK, None)


def _create() -> None:
    with st.form("create-webhook"):
        url = st.text_input(
            "Address", max_chars=URL_CHARS_MAX, placeholder="https://example.com/hooks/gridline"
        )
        events = st.multiselect("It hears of", EVENTS, default=EVENTS, format_func=words.notice)
        sent = st.form_submit_button("Add a webhook", type="primary", icon=":material/add:")
    if not sent:
        return
    if not url.strip() or not events:
        st.warning("Give an address, and choose at least one event.", icon=":material/edit:")
        return
    try:
        made = visitor.client().webhooks.create(url.strip(), tuple(events))
    except ClientError as error:
        visitor.check_refusal(error)
        live.problem("The webhook was not added", error)
        return
    st.session_state[MADE_WEBHOOK] = made["secret"]
    st.rerun()


def _load(client: Client) -> Loaded:
    return [
        (one, client.webhooks.deliveries(one["id"], limit=DELIVERIES).data) for one in client.webhooks.every()
    ]


def _draw(found: Loaded) -> None:
    if not found:
        st.caption(
            "No webhook yet. With one nobody has to poll: your address is told as soon as a batch ends."
        )
    for webhook, deliveries in found:
        with st.container(border=True, key=f"webhook-{webhook['id']}"):
            markup.draw(URL.format(webhook["url"], webhook["url"]))
            markup.draw(markup.badge(words.webhook(webhook)))
            st.caption(
                " · ".join((webhook["id"], *(words.notice(one) for one in webhook["events"] or EVENTS)))
            )
            if deliveries:
                st.dataframe(frame(deliveries), hide_index=True)
            else:
                st.caption("Nothing was sent to it yet.")
            with st.container(horizontal=True):
                _actions(webhook)


def frame(deliveries: tuple[Json, ...]) -> "pd.DataFrame":
    """The last deliveries as a table, newest first."""
    import pandas as pd

    rows: list[dict[str, Any]] = [
        {
            "When (UTC)": f"{figures.instant(one['created_at']):%Y-%m-%d %H:%M:%S}",
            "Event": one["type"],
            "Batch": one["data"]["id"],
            "State": words.delivery(one["state"]),
            "Attempts": one["attempts"],
            "Last answer": one["last_error"] or str(one["last_status"] or ""),
        }
        for one in deliveries
    ]
    return pd.DataFrame(rows)


def _actions(webhook: Json) -> None:
    calls = visitor.client().webhooks
    name = webhook["id"]
    if webhook["disabled"]:
        if st.button("Enable", icon=":material/play_arrow:", key=f"enable-{name}"):
            _do("It could not be enabled", lambda: calls.change(name, disabled=False))
    elif st.button("Send a test event", icon=":material/send:", key=f"test-{name}"):
        _do("No test event was sent", lambda: calls.test(name))
    with st.popover("New secret", icon=":material/key:", key=f"ask-rotate-{name}"):
        st.write("The old secret signs beside the new one for 24 hours, so that a receiver can change over.")
        if st.button("Make it now", type="primary", key=f"rotate-{name}"):
            _do("No secret was made", lambda: _keep(calls.rotate(name)))
    with st.popover("Delete", icon=":material/delete:", key=f"ask-delete-{name}"):
        st.write("What it is still owed is not sent any more. It cannot be undone.")
        if st.button("Delete it now", type="primary", key=f"delete-{name}"):
            _do("It could not be deleted", lambda: calls.delete(name))


def _keep(made: Json) -> None:
    st.session_state[MADE_WEBHOOK] = made["secret"]


def _do(problem: str, call: Any) -> None:
    """Make the call and draw the page anew, or say why not."""
    try:
        call()
    except ClientError as error:
        visitor.check_refusal(error)
        live.problem(problem, error)
    else:
        st.rerun()


main()
