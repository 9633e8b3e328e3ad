"""All batches of the account: its credit, filters that the address keeps, and one row a batch."""

import streamlit as st

from dashboard import figures, listing, live, markup
from dashboard.listing import Listing

ROWS = 25


def main() -> None:
    """Draw the page."""
    st.title("Batches", anchor=False)
    # Stands outside the fragment that fills it: an empty holds one drawing, the newest.
    numbers = st.empty()
    with st.container(horizontal=True, vertical_alignment="center"):
        group = st.segmented_control(
            "Status",
            listing.GROUPS,
            default="All",
            required=True,
            key="status",
            bind="query-params",
            label_visibility="collapsed",
        )
        text = st.text_input(
            "Search",
            key="search",
            bind="query-params",
            label_visibility="collapsed",
            icon=":material/search:",
            placeholder="Id, model or description",
            width=320,
            max_chars=100,
        )
    wanted = st.session_state.setdefault("rows", ROWS)

    def draw(found: Listing) -> None:
        with numbers.container():
            _numbers(found)
        _rows(found, wanted)

    live.follow(
        lambda client: listing.load(client, group=group or "All", text=text or "", wanted=wanted),
        draw,
        active=lambda found: found.open > 0,
        failed=live.could_not_load,
    )


def _numbers(found: Listing) -> None:
    available, held, opened = st.columns(3)
    account = found.account
    available.metric(
        "Available credits", figures.number(account.available_nanos), border=True, help=figures.UNIT_HELP
    )
    held.metric(
        "Held credits",
        figures.number(account.held_nanos),
        border=True,
        help="Set aside for batches that have not ended: the most they can cost. What they do not use returns.",
    )
    limit = account.limits.get("open_batches")
    opened.metric(
        "Open batches",
        f"{found.open:,}" if limit is None else f"{limit.current} of {limit.limit}",
        border=True,
        help="Batches that have not ended, and how many you may have at once.",
    )


def _rows(found: Listing, wanted: int) -> None:
    if not found.batches:
        _first_run()
        return
    if not found.matching:
        _no_match(found)
        return
    at = figures.now()
    with st.container(border=True, gap=None, key="batches"):
        listing.draw_head()
        for batch in found.matching[:wanted]:
            listing.draw_row(batch, at)
    told = f"{min(wanted, len(found.matching)):,} shown, newest first. Updated {at:%H:%M:%S} UTC"
    st.caption(told + (", again every 5 seconds while a batch is open." if found.open else "."))
    if (len(found.matching) > wanted or found.has_more) and st.button(
        "Show more", icon=":material/expand_more:"
    ):
        st.session_state["rows"] = wanted + ROWS
        st.rerun()


def _first_run() -> None:
    with st.container(border=True):
        st.subheader("No batches yet", anchor=False)
        st.write("Your first one appears here as soon as it is accepted.")
        st.page_link(
            "screens/overview.py", label="How to send it with the OpenAI SDK", icon=":material/code:"
        )
        st.page_link("screens/new_batch.py", label="Send a file from here", icon=":material/add_circle:")


def _no_match(found: Listing) -> None:
    searched = (
        f"the newest {len(found.batches):,} batches"
        if found.has_more
        else f"all {len(found.batches):,} batches"
    )
    markup.draw(
        markup.callout(
            "gray", "search_off", "No batch matches", f"Searched {searched}. Try another status or search."
        )
    )
    st.button("Clear filters", icon=":material/filter_alt_off:", on_click=_clear)


def _clear() -> None:
    st.session_state["status"] = "All"
    st.session_state["search"] = ""


main()
