"""Pages that follow what they show: read again every 5 seconds while something is active, and only then."""

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from dashboard import markup, visitor
from gridline.client import Client, ClientError

Shown = TypeVar("Shown")
EVERY = "5s"


def follow(
    load: Callable[[Client], Shown],
    draw: Callable[[Shown], None],
    *,
    active: Callable[[Shown], bool],
    failed: Callable[[ClientError], None],
) -> None:
    """Load and draw; while ``active``, draw anew in a fragment until it is not, then run the page once more.

    ``failed`` draws what takes the page's place when the first load fails. Later, a failure shows above
    the last state and the next tick tries again.
    """
    try:
        fresh = [load(visitor.client())]
    except ClientError as error:
        visitor.check_refusal(error)
        failed(error)
        return
    ticking = active(fresh[0])
    last = fresh[0]

    def body() -> None:
        nonlocal last
        try:
            last = fresh.pop() if fresh else load(visitor.client())
        except ClientError as error:
            visitor.check_refusal(error)
            problem("Not up to date", error)
        draw(last)
        if ticking and not active(last):
            st.rerun()

    st.fragment(body, run_every=EVERY if ticking else None)()


def problem(title: str, error: ClientError) -> None:
    """What the API said, with the id that finds the call in its logs. Never a traceback."""
    named = [f"Code: {error.code}"] if error.code else []
    named += [f"Request id: {error.request_id}"] if error.request_id else []
    markup.draw(markup.callout("red", "cloud_off", title, error.message, small=" · ".join(named)))


def could_not_load(error: ClientError) -> None:
    """Take a page's place: the problem and a way to try again."""
    problem("This could not be loaded", error)
    st.button("Try again", icon=":material/refresh:")
