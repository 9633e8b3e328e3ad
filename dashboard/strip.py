"""Where a batch's time went, as one strip: checked, waited (and for what), ran, wrote its files. Pure: events in, markup out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from dashboard import figures, markup, words
from dashboard.words import Colour
from gridline.client import Event

LEGEND = Markup('<div class="gl-legend">{}</div>')
PART = Markup('<span class="gl-{}">{}</span>')
ENDS = frozenset({"completed", "failed", "expired", "cancelled"})


@dataclass(frozen=True)
class Span:
    """Time at one thing."""

    what: str
    colour: Colour
    took: timedelta


CHECKING, RUNNING = Span("checked", "violet", timedelta()), Span("ran", "blue", timedelta())
WRITING, STOPPING = Span("wrote its files", "green", timedelta()), Span("stopped", "gray", timedelta())
MOVES = {"in_progress": RUNNING, "finalizing": WRITING, "cancelling": STOPPING}


def spans(events: Sequence[Event], at: datetime) -> list[Span]:
    """What the batch was at, in order; an open one until now. Neighbours that are the same are one."""
    found: list[Span] = []
    state, phase, since = CHECKING, CHECKING, events[0].at if events else at
    for event in events:
        phase = MOVES.get(event.kind, phase)
        following = _following(event, state, phase)
        if following is not state or event.kind in ENDS:
            _add(found, state, event.at - since)
            state, since = following, event.at
        if event.kind in ENDS:
            return found
    _add(found, state, at - since)
    return found


def _following(event: Event, state: Span, phase: Span) -> Span:
    if event.kind == "waiting":
        return Span(f"waited {words.wait(str(event.details.get('reason_code', '')))}", "orange", timedelta())
    # A wait lasts until it is over: being called in_progress does not end it.
    waits = state.colour == "orange"
    return state if waits and event.kind not in ("went_on", "finalizing", "cancelling") else phase


def _add(found: list[Span], state: Span, took: timedelta) -> None:
    if found and found[-1].what == state.what:
        took += found.pop().took
    if took > timedelta():
        found.append(Span(state.what, state.colour, took))


def draw(events: Sequence[Event], at: datetime) -> Markup:
    """The strip with its times in words."""
    parts = spans(events, at)
    told = [f"{one.what} {figures.duration(one.took)}" for one in parts]
    total = sum(int(one.took.total_seconds() * 1000) for one in parts)
    bar = markup.bar(
        ((one.colour, int(one.took.total_seconds() * 1000)) for one in parts),
        total=total,
        label=", ".join(told),
    )
    return markup.joined(
        (
            bar,
            LEGEND.format(
                markup.joined(PART.format(one.colour, text) for one, text in zip(parts, told, strict=True))
            ),
        )
    )
