"""The account's files: inputs that a batch can use, results, when each is deleted, and deleting one now."""

from datetime import datetime

import streamlit as st
from markupsafe import Markup

from dashboard import figures, live, markup, visitor, words
from gridline.client import Client, ClientError, FileInfo, Page

ROWS = 50
INPUT = "batch"
NAME = Markup('<div class="gl-strong gl-clip" title="{}">{}</div>')
UNDER = Markup('<div class="gl-muted">{} · {}{}{}</div><div class="gl-muted gl-clip gl-mono">{}</div>')
SIDES = (0.7, 0.3)


def main() -> None:
    """Draw the page."""
    st.title("Files", anchor=False)
    after = st.query_params.get("after", "")
    live.follow(
        lambda client: _load(client, after), _draw, active=lambda _page: False, failed=live.could_not_load
    )


def _load(client: Client, after: str) -> Page[FileInfo]:
    return client.files(after=after or None, limit=ROWS)


def _draw(page: Page[FileInfo]) -> None:
    st.page_link("screens/new_batch.py", label="Upload a file for a new batch", icon=":material/upload:")
    if not page.data:
        st.caption("No files here. What you upload and what batches deliver is listed, newest first.")
        return
    at = figures.now()
    with st.container(border=True, gap=None, key="files"):
        for one in page.data:
            with st.container(key=f"row-{one.id}"):
                _row(one, at)
    with st.container(horizontal=True):
        if st.query_params.get("after"):
            st.page_link("screens/files.py", label="Newest", icon=":material/first_page:")
        if page.has_more:
            st.page_link(
                "screens/files.py", label="Older", icon=":material/chevron_right:",
                query_params={"after": page.data[-1].id},
            )  # fmt: skip


def _row(one: FileInfo, at: datetime) -> None:
    told, acts = st.columns(SIDES, vertical_alignment="center")
    made = Markup(" · uploaded {}").format(markup.time(one.created_at, at)) if one.created_at else ""
    gone = Markup(" · deleted {}").format(markup.time(one.expires_at, at)) if one.expires_at else ""
    with told:
        markup.draw(NAME.format(one.filename, one.filename or one.id))
        markup.draw(UNDER.format(words.purpose(one.purpose), figures.size(one.bytes), made, gone, one.id))
    with acts.container(
        horizontal=True, horizontal_alignment="right", vertical_alignment="center", gap="small"
    ):
        if one.purpose == INPUT:
            st.page_link(
                "screens/new_batch.py",
                label="New batch",
                icon=":material/play_arrow:",
                query_params={"file": one.id},
            )
        st.link_button(
            "", f"/download/file/{one.id}", icon=":material/download:", help="Download", type="tertiary"
        )
        _delete(one)


def _delete(one: FileInfo) -> None:
    with st.popover("", icon=":material/delete:", help="Delete", type="tertiary"):
        st.write("It cannot be brought back. A file that a batch still needs is kept.")
        if st.button("Delete it now", type="primary", key=f"delete-{one.id}"):
            try:
                visitor.client().delete_file(one.id)
            except ClientError as error:
                visitor.check_refusal(error)
                live.problem("It could not be deleted", error)
            else:
                st.rerun()


main()
