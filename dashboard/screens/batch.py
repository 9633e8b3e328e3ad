"""One batch, at ``/batch?id=<batch id>``: why it waits, how far it is, what it cost, what went wrong, its files."""

from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from dashboard import (
    errors_table,
    failures,
    figures,
    live,
    markup,
    parts,
    snippets,
    strip,
    timeline,
    visitor,
    words,
)
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
    identity.code(batch.id, language=None, wrap_lines=True)
    for box in (parts.wait(batch, at), parts.outcome(batch)):
        if box is not None:
            markup.draw(box)
    main_column, side = st.columns([0.64, 0.36], gap="medium")
    with main_column:
        _progress(seen, at)
        if any(error.line is not None for error in batch.errors):
            _line_errors(batch)
        if seen.errors is not None:
            _failures(batch, seen.errors)
        with st.container(border=True):
            st.subheader("Timeline", anchor=False)
            markup.draw(timeline.draw(seen.events, at, open_=not batch.ended))
    with side:
        _cost(seen)
        _cancel(batch)
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
    st.page_link(
        "screens/contact.py",
        label="Ask the operator about this batch",
        icon=":material/mail:",
        query_params={"batch": batch.id},
    )


def _progress(seen: Seen, at: datetime) -> None:
    with st.container(border=True):
        st.subheader("Progress", anchor=False)
        markup.draw(parts.progress(seen.batch))
    with st.container(border=True):
        st.subheader("Where its time went", anchor=False)
        markup.draw(strip.draw(seen.events, at))


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


def _failures(batch: Batch, file: FileInfo) -> None:
    """Failed lines by code with what mends them, and all of them as a new input."""
    try:
        with visitor.client().download(file.id) as content:
            found = failures.read(content.chunks)
    except ClientError as error:
        visitor.check_refusal(error)
        live.problem("The error file could not be read", error)
        return
    with st.container(border=True):
        st.subheader("Failed lines", anchor=False)
        if not found.whole:
            st.caption("Of the beginning of a large error file; the file has all of them.")
        for group in found.groups:
            with st.expander(f"{group.code}: {figures.count(group.lines, 'line')}"):
                st.write(words.fix(group.code))
                st.dataframe(errors_table.of_lines(group.first), hide_index=True)
        st.link_button(
            "Their requests as a new file",
            f"/download/{batch.id}/retry",
            icon=":material/replay:",
            help="The failed lines of the input, as they were: correct what needs it and upload it as a new batch.",
        )


def _cost(seen: Seen) -> None:
    with st.container(border=True):
        st.subheader("Cost", anchor=False, help=figures.UNIT_HELP)
        markup.draw(parts.cost(seen.batch, seen.receipt))
        if seen.receipt is not None and seen.receipt.charged_nanos:
            with st.expander("How this was reckoned"):
                markup.draw(parts.reckoning(seen.receipt))


def _cancel(batch: Batch) -> None:
    """A button, and before it takes effect what it will cost; only while there is something to cancel."""
    consequence = parts.cancelling(batch)
    if consequence is None:
        return
    with st.popover("Cancel this batch", icon=":material/block:", width="stretch"):
        st.write(consequence)
        if st.button("Cancel it now", type="primary", key="cancel"):
            try:
                visitor.client().cancel(batch.id)
            except ClientError as error:
                visitor.check_refusal(error)
                live.problem("It could not be cancelled", error)
            else:
                st.rerun()


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
        if not seen.batch.ended and seen.batch.counts.completed + seen.batch.counts.failed:
            st.link_button(
                "Results so far",
                f"/download/{seen.batch.id}/partial",
                icon=":material/download:",
                width="stretch",
                help="What is done, in the order in which it was done.",
            )
        expiry = next((info.expires_at for _, _, info in offered if info.expires_at), None)
        if expiry is not None:
            st.caption(f"Kept until {figures.exact(expiry)}.")
        if not offered:
            st.caption("Output and error files appear here when the batch has ended." if not seen.batch.ended
                       else "This batch has no files, or they are no longer kept.")  # fmt: skip


def _snippets(batch: Batch) -> None:
    with st.expander("The same from code", icon=":material/code:"):
        base_url = visitor.base_url()
        python, curl = st.tabs(["Python", "curl"])
        python.code(snippets.follow_python(base_url, batch.id), language="python", wrap_lines=True)
        curl.code(snippets.follow_curl(base_url, batch.id), language="bash", wrap_lines=True)


main()
