"""The list of batches: what is read for it, what a filter keeps, and how a row looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import streamlit as st
from markupsafe import Markup

from dashboard import figures, markup, words
from gridline.client import Account, Batch, Client

PAGE_BATCHES = 100
# A rare status is looked for in this many pages; then the list says so.
PAGES_MAX = 5
GROUPS = ("All", "Active", "Completed", "Failed", "Expired", "Cancelled")
SIDES = (0.25, 0.75)
HEAD = Markup(
    '<div class="gl-row gl-head"><div>Status</div><div>Progress</div><div>{}</div>'
    '<div class="gl-right">Cost (credits)</div><div class="gl-right">Created</div></div>'
)
ROW = Markup(
    '<div class="gl-row"><div>{}</div><div>{}</div><div class="gl-lines2 gl-muted" title="{}">{}</div>'
    '<div class="gl-right">{}</div><div class="gl-right gl-muted">{}</div></div>'
)
UNDER = Markup('<div class="gl-muted gl-clip" title="{}">{}</div>')


@dataclass(frozen=True)
class Listing:
    """What the page shows: the account, its newest batches that match, and how many are open."""

    account: Account
    batches: tuple[Batch, ...]
    matching: tuple[Batch, ...]
    has_more: bool

    @property
    def open(self) -> int:
        """Batches that have not ended, among those read."""
        return sum(not one.ended for one in self.batches)


def load(client: Client, *, group: str, text: str, wanted: int) -> Listing:
    """The account and its batches, newest first, until ``wanted`` match or PAGES_MAX pages are read."""
    account = client.account()
    batches: list[Batch] = []
    has_more = True
    for _ in range(PAGES_MAX):
        page = client.batches(after=batches[-1].id if batches else None, limit=PAGE_BATCHES)
        batches.extend(page.data)
        has_more = page.has_more
        if not has_more or len(kept(batches, group=group, text=text)) >= wanted:
            break
    return Listing(account, tuple(batches), kept(batches, group=group, text=text), has_more)


def kept(batches: Sequence[Batch], *, group: str, text: str) -> tuple[Batch, ...]:
    """Those of a status group whose id, model or metadata holds the text."""
    sought = text.strip().casefold()
    return tuple(one for one in batches if _in_group(one, group) and sought in _searched(one))


def _in_group(batch: Batch, group: str) -> bool:
    if group == "Active":
        return not batch.ended
    return group == "All" or batch.status == group.lower()


def _searched(batch: Batch) -> str:
    return " ".join((batch.id, batch.model or "", *batch.metadata.values())).casefold()


def described(batch: Batch) -> str:
    """The customer's own name for a batch, from its metadata; "" without one."""
    return batch.metadata.get("description") or batch.metadata.get("name") or ""


def draw_head(told: str = "What it waits for") -> None:
    """The names of the columns; ``told`` is what the rows tell of their batches."""
    left, right = st.columns(SIDES)
    left.html('<div class="gl-row gl-head" style="grid-template-columns:1fr">Batch</div>')
    right.html(str(HEAD.format(told)))


def draw_row(batch: Batch, at: datetime, told: str | None = None) -> None:
    """One batch; its id links to its page. ``told`` goes in the place of what it waits for."""
    with st.container(key=f"row-{batch.id}"):
        left, right = st.columns(SIDES, vertical_alignment="center")
        with left:
            st.page_link("screens/batch.py", label=batch.id, query_params={"id": batch.id})
            under = " · ".join(
                part
                for part in (described(batch), batch.model or ("" if batch.ended else "model not known yet"))
                if part
            )
            markup.draw(UNDER.format(under, under))
        if told is None:
            told = batch.wait.reason if batch.wait else ""
        right.html(
            str(
                ROW.format(
                    markup.badge(words.status(batch.status)),
                    progress(batch),
                    told,
                    told,
                    "" if batch.cost_nanos is None else figures.number(batch.cost_nanos),
                    markup.time(batch.created_at, at),
                )
            )
        )


def progress(batch: Batch) -> Markup:
    """A small bar with the counts under it, or nothing while the lines are not counted."""
    counts = batch.counts
    if not counts.total:
        return Markup("")
    label = f"{counts.completed:,} done, {counts.failed:,} failed, {counts.left:,} left of {counts.total:,}"
    drawn = markup.bar(
        (("green", counts.completed), ("red", counts.failed), ("gray", counts.cancelled)),
        total=counts.total,
        label=label,
    )
    told = f"{counts.completed:,} of {counts.total:,}" + (
        f" · {counts.failed:,} failed" if counts.failed else ""
    )
    return markup.joined(
        (drawn, Markup('<div class="gl-small" style="margin-top:4px">{}</div>').format(told))
    )
