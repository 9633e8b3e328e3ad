"""HTML for ``st.html``, made so that every text that is put in is escaped: nothing of a customer's is ever markup."""

from collections.abc import Iterable
from datetime import datetime

import streamlit as st
from markupsafe import Markup

from dashboard import figures
from dashboard.words import Colour, Word

ICON = Markup('<span class="gl-icon" aria-hidden="true">{}</span>')
BADGE = Markup('<span class="gl-badge gl-{}">{} {}</span>')
TIME = Markup('<time datetime="{}" title="{}">{}</time>')
CALLOUT = Markup(
    '<div class="gl-callout gl-{}" role="status">{}<div><strong>{}</strong><div class="gl-text">{}</div>{}</div></div>'
)
SMALL = Markup('<div class="gl-small">{}</div>')
BAR = Markup('<div class="gl-bar" role="img" aria-label="{}" title="{}">{}</div>')
PIECE = Markup('<span class="gl-{}" style="width:{}%"></span>')
ROW = Markup("<dt>{}</dt><dd>{}</dd>")
LIST = Markup('<dl class="gl-facts">{}</dl>')
BRAND = Markup('<div class="gl-brand"><span></span><span></span><span></span><b>Gridline</b></div>')


def draw(html: Markup) -> None:
    """Put markup on the page."""
    st.html(str(html))


def brand() -> str:
    """The product's name with its mark."""
    return str(BRAND)


def joined(parts: Iterable[Markup | str]) -> Markup:
    """Pieces one after the other; those that are plain text are escaped."""
    return Markup("").join(parts)


def icon(name: str) -> Markup:
    """A Material symbol, hidden from screen readers: a word stands beside it."""
    return ICON.format(name)


def badge(word: Word) -> Markup:
    """A word with its icon and colour."""
    return BADGE.format(word.colour, icon(word.icon), word.text)


def time(moment: datetime, at: datetime) -> Markup:
    """An instant seen from ``at``, with the exact one when pointed at."""
    return TIME.format(moment.isoformat(), figures.exact(moment), figures.relative(moment, at))


def callout(
    colour: Colour, symbol: str, title: str, text: str | Markup, *, small: str | Markup = ""
) -> Markup:
    """A box that says what is the matter, and in small what helps or since when."""
    return CALLOUT.format(colour, icon(symbol), title, text, SMALL.format(small) if small else "")


def bar(pieces: Iterable[tuple[Colour, int]], *, total: int, label: str) -> Markup:
    """A bar of coloured parts of ``total``, told in words by its label."""
    drawn = (PIECE.format(colour, 100 * part / total) for colour, part in pieces if part and total)
    return BAR.format(label, label, joined(drawn))


def facts(rows: Iterable[tuple[str, str | Markup]]) -> Markup:
    """Names and what they are."""
    return LIST.format(joined(ROW.format(name, value) for name, value in rows))
