"""One batch, at ``/batch?id=<batch id>``: why it waits, how far it is, what it cost, what went wrong, its files."""

from dataclasses import dataclass

import streamlit as st

from dashboard import errors_table, figures, live, markup, parts, snippets, timeline
from gridline.client import Batch, Client, ClientError, Event, FileInfo, Receipt
from gridline.settings import settings


@dataclass(frozen=True)
class Seen:
    """What the page reads for one batch."""

    batch: Batch
    events: tuple[Event, ...]
    receipt: Receipt | None
    source: FileInfo | None
    output: FileInfo | None
    errors: FileInfo | None


def main() -> None:
    """Draw the page."""
    st.page_link("screens/batches.py", label="All batches", icon=":material/arrow_back:")
    batch_id = st.query_params.get("id", "")
    if not batch_id:
        markup.draw(
            markup.callout("gray", "help", "Which batch?", "Choose one from the list of all batches.")
        )
        return
    live.follow(
        lambda client: _load(client, batch_id),
        _draw,
        active=lambda seen: not seen.batch.ended,
        failed=_failed,
    )


def _load(client: Client, batch_id: str) -> Seen:
    batch = client.batch(batch_id)
    return Seen(
        batch,
        client.events(batch.id),
        client.receipt(batch.id) if batch.hold_nanos is not None else None,
        _file(client, batch.input_file_id),
        _file(client, batch.output_file_id),
        _file(client, batch.error_file_id),
    )


def _file(client: Client, file_id: str | None) -> FileInfo | None:
    """A file that may have been deleted or have expired since."""
    if not file_id:
        return None
    try:
        return client.file(file_id)
    except ClientError as error:
        if error.not_found:
            return None
        raise


def _failed(error: ClientError) -> None:
    if error.not_found:
        markup.draw(
            markup.callout("gray", "search_off", "There is no such batch", "Not in this account, at least. "
                           "Check the id, or sign in with a token of the account that created it.",
                           small=f"Request id: {error.request_id}" if error.request_id else "")
        )  # fmt: skip
        return
    live.could_not_load(error)


def _draw(seen: Seen) -> None:
    batch, at = seen.batch, figures.now()
    heading, identity = st.columns([0.64, 0.36], gap="medium", vertical_alignment="bottom")
    with heading:
        markup.draw(parts.title(batch, seen.source))
        markup.draw(parts.subtitle(batch, at))
    identity.code(batch.id, language=None)
    for box in (parts.wait(batch, at), parts.outcome(batch)):
        if box is not None:
            markup.draw(box)
    main_column, side = st.columns([0.64, 0.36], gap="medium")
    with main_column:
        _progress(batch)
        if any(error.line is not None for error in batch.errors):
            _line_errors(batch)
        with st.container(border=True):
            st.subheader("Timeline", anchor=False)
            markup.draw(timeline.draw(seen.events, at, open_=not batch.ended))
    with side:
        _cost(seen)
        _files(seen)
        with st.container(border=True):
            st.subheader("Details", anchor=False)
            markup.draw(parts.facts(batch, seen.source, at))
            st.link_button(
                "Airflow run",
                f"{settings().public_airflow_url}/dags/batch/runs/{batch.id}",
                icon=":material/open_in_new:",
                type="tertiary",
                help="For operators: the run of this batch in the Airflow UI.",
            )
    _snippets(batch)


def _progress(batch: Batch) -> None:
    with st.container(border=True):
        st.subheader("Progress", anchor=False)
        markup.draw(parts.progress(batch))


def _line_errors(batch: Batch) -> None:
    with st.container(border=True):
        st.subheader("Problems in the input file", anchor=False)
        more = batch.errors_total - len(batch.errors)
        st.caption(
            f"{figures.count(batch.errors_total, 'problem')}, by line of the file, counted from 1."
            + (f" The first {len(batch.errors):,} are listed." if more > 0 else "")
        )
        st.dataframe(
            errors_table.frame(batch.errors),
            hide_index=True,
            column_config={
                "Line": st.column_config.NumberColumn(width=60, format="%d"),
                "Code": st.column_config.TextColumn(width=170),
                "Parameter": st.column_config.TextColumn(width=110),
                "Message": st.column_config.TextColumn(width="large"),
            },
        )
        st.download_button(
            "Problems as CSV",
            errors_table.as_csv(batch.errors),
            file_name=f"{batch.id}_problems.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
        )


def _cost(seen: Seen) -> None:
    with st.container(border=True):
        st.subheader("Cost", anchor=False, help=figures.UNIT_HELP)
        markup.draw(parts.cost(seen.batch, seen.receipt))
        if seen.receipt is not None and seen.receipt.charged_nanos:
            with st.expander("How this was reckoned"):
                markup.draw(parts.reckoning(seen.receipt))


def _files(seen: Seen) -> None:
    with st.container(border=True):
        st.subheader("Files", anchor=False)
        offered = [
            (name, kind, info)
            for name, kind, info in (("Output", "output", seen.output), ("Errors", "errors", seen.errors))
            if info is not None
        ]
        for name, kind, info in offered:
            st.link_button(
                f"{name} ({figures.size(info.bytes)})",
                f"/download/{seen.batch.id}/{kind}",
                icon=":material/download:",
                width="stretch",
            )
        expiry = next((info.expires_at for _, _, info in offered if info.expires_at), None)
        if expiry is not None:
            st.caption(f"Kept until {figures.exact(expiry)}.")
        if not offered:
            st.caption("Output and error files appear here when the batch has ended." if not seen.batch.ended
                       else "This batch has no files, or they are no longer kept.")  # fmt: skip


def _snippets(batch: Batch) -> None:
    with st.expander("The same from code", icon=":material/code:"):
        python, curl = st.tabs(["Python", "curl"])
        python.code(snippets.follow_python(batch.id), language="python")
        curl.code(snippets.follow_curl(batch.id), language="bash")


main()
