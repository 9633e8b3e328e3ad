"""A batch's history: each event with its icon, what it says, when, and how long a wait took."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from markupsafe import Markup

from dashboard import figures, markup, words
from gridline.client import Event

LIST = Markup('<ol class="gl-timeline">{}</ol>')
ITEM = Markup(
    '<li><span class="gl-dot gl-{}">{}</span><div>{}<div class="gl-small">{}</div></div>'
    '<div class="gl-small gl-when">{}<br>{}</div></li>'
)


def draw(events: Sequence[Event], at: datetime, *, open_: bool) -> Markup:
    """The events, oldest first; a wait lasts until the next event, the last one of an open batch until now."""
    items = []
    for index, event in enumerate(events):
        following = events[index + 1].at if index + 1 < len(events) else (at if open_ else None)
        word = words.event(event.kind)
        items.append(
            ITEM.format(
                word.colour,
                markup.icon(word.icon),
                _title(event, word.text),
                _said(event, following),
                markup.time(event.at, at),
                f"{event.at:%H:%M:%S} UTC",
            )
        )
    return LIST.format(markup.joined(items))


def _title(event: Event, text: str) -> str:
    if event.kind == "waiting":
        return f"{text} {words.wait(str(event.details.get('reason_code', '')))}"
    return text


def _said(event: Event, following: datetime | None) -> str:
    said = [text for text in (_detail(event.kind, event.details), _by(event.actor)) if text]
    if event.kind == "waiting" and following is not None:
        said.insert(0, f"for {figures.duration(following - event.at)}")
    return " · ".join(said)


def _detail(kind: str, details: Mapping[str, Any]) -> str:
    if kind == "validated":
        refused = details.get("refused") or 0
        parts = [figures.count(int(details.get("lines") or 0), "line")]
        parts += [figures.count(int(details.get("partitions") or 0), "partition")]
        return ", ".join(parts) + (f", {refused:,} refused" if refused else "")
    if kind == "held":
        return f"{figures.trimmed(str(details.get('amount', '')))} {figures.UNIT}"
    return str(details.get("error_code") or "")


def _by(actor: str) -> str:
    # What the platform does by itself needs no name; a token, a user or an operator does.
    return "" if actor in ("", "keeper") else f"by {actor}"
