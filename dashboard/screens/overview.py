"""The first page: credit, what runs, what went wrong last, and the first steps of a new account."""

import streamlit as st
from markupsafe import Markup

from dashboard import figures, listing, live, markup, overview, parts, snippets, visitor
from dashboard.overview import Overview, Step
from gridline.client import Batch, ClientError

STEP = Markup('<div class="gl-step gl-{}">{}<div><strong>{}</strong><div class="gl-muted">{}</div></div></div>')  # fmt: skip
WAYS = (
    ("tokens", "Make a token", "key"),
    ("contact", "Ask for credit", "mail"),
    ("new_batch", "Send a file from here", "add_circle"),
)
"""By first step: the page where it is done."""


def main() -> None:
    """Draw the page."""
    st.title("Overview", anchor=False)
    found = visitor.session()
    with_token = found is None or not found.email
    live.follow(
        lambda client: overview.load(client, with_token=with_token),
        _draw,
        active=lambda seen: bool(seen.active),
        failed=live.could_not_load,
    )


def _draw(seen: Overview) -> None:
    _numbers(seen)
    if not seen.begun:
        _first_steps(seen)
    _active(seen.active)
    if seen.troubled:
        _troubled(seen.troubled)


def _numbers(seen: Overview) -> None:
    for place, (name, nanos, what) in zip(
        st.columns(3),
        (
            ("Available credits", seen.account.available_nanos, figures.UNIT_HELP),
            ("Held credits", seen.account.held_nanos, "Set aside for batches that have not ended."),
            ("Spent this month", seen.spent_nanos, "Charged for batches that ended in this UTC month."),
        ),
        strict=True,
    ):
        place.metric(name, figures.number(nanos), border=True, help=what)


def _first_steps(seen: Overview) -> None:
    with st.container(border=True):
        st.subheader("Your first batch", anchor=False)
        for number, step in enumerate(seen.steps, 1):
            markup.draw(_step(number, step))
        with st.container(horizontal=True):
            for step, (page, label, icon) in zip(seen.steps, WAYS, strict=True):
                if not step.done:
                    st.page_link(f"screens/{page}.py", label=label, icon=f":material/{icon}:")
        st.write("Or with the OpenAI SDK:")
        st.code(snippets.first_batch(visitor.base_url(), _chat_model()), language="python", wrap_lines=True)


def _step(number: int, step: Step) -> Markup:
    icon = markup.icon("check_circle" if step.done else "radio_button_unchecked")
    done = " (done)" if step.done else ""
    return STEP.format("green" if step.done else "gray", icon, f"{number}. {step.title}{done}", step.told)


def _chat_model() -> str:
    """A model that the snippet can name."""
    try:
        models = visitor.client().models()
    except ClientError as error:
        visitor.check_refusal(error)
        models = ()
    return next((model.id for model in models if model.kind in (None, "chat")), "<model id>")


def _active(batches: tuple[Batch, ...]) -> None:
    at = figures.now()
    with st.container(border=True):
        st.subheader("Active batches", anchor=False)
        with st.container(gap=None, key="batches"):
            if batches:
                listing.draw_head()
            else:
                markup.draw(parts.PARAGRAPH.format("Nothing runs or waits at the moment."))
            for batch in batches[: overview.SHOWN_ACTIVE]:
                listing.draw_row(batch, at)
        st.page_link("screens/batches.py", label="All batches", icon=":material/stacks:")


def _troubled(batches: tuple[Batch, ...]) -> None:
    at = figures.now()
    with st.container(border=True):
        st.subheader("What went wrong last", anchor=False)
        with st.container(gap=None, key="troubled"):
            listing.draw_head("What went wrong")
            for batch in batches[: overview.SHOWN_TROUBLED]:
                listing.draw_row(batch, at, overview.trouble(batch))


main()
