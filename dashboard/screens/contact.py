"""A message to the operator, about a batch or about none."""

import streamlit as st

from dashboard import live, visitor
from gridline.client import ClientError

TEXT_CHARS_MAX = 5_000


def main() -> None:
    """Draw the page; ``/contact?batch=<batch id>`` names the batch that the message is about."""
    st.title("Write to the operator", anchor=False)
    with st.form("message", clear_on_submit=False):
        batch_id = st.text_input(
            "About the batch", value=st.query_params.get("batch", ""), placeholder="None"
        )
        text = st.text_area(
            "Message", max_chars=TEXT_CHARS_MAX, height=220,
            placeholder="What happened, and what should happen? Leave tokens out of it.",
        )  # fmt: skip
        sent = st.form_submit_button("Send", type="primary", icon=":material/send:")
    if not sent:
        st.caption("For a higher limit, say which and why. A batch's id lets the operator see what you see.")
        return
    if not text.strip():
        st.warning("Write something first.", icon=":material/edit:")
        return
    try:
        visitor.client().write(text, batch_id=batch_id.strip() or None)
    except ClientError as error:
        visitor.check_refusal(error)
        live.problem("The message was not sent", error)
        return
    st.success("The operator has your message.", icon=":material/check_circle:")


main()
