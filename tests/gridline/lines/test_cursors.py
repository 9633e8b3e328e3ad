"""Cursors: opaque text that goes there and back, and nothing else passes for one."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridline.errors import InvalidRequest
from gridline.lines.cursors import TEXT_CHARS_MAX, Cursor

from .conftest import BATCH

NUMBERS = st.integers(0, 2**40)


@given(NUMBERS, st.dictionaries(st.tuples(NUMBERS, NUMBERS), NUMBERS))
def test_there_and_back(refused: int, segments: dict[tuple[int, int], int]) -> None:
    """Whatever was read, its cursor says so, in text that an address can hold as it is."""
    cursor = Cursor(refused, segments)
    text = cursor.text(BATCH)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", text)
    assert Cursor.read(text, BATCH) == cursor


def test_the_largest_batch_has_a_short_cursor() -> None:
    """100 partitions, some with three attempts, fit easily into a header and an address."""
    cursor = Cursor(50_000, {(number, attempt): 500 for number in range(100) for attempt in (1, 2, 3)})
    assert len(cursor.text(BATCH)) < 2_000


def changed(text: str) -> list[str]:
    """The text with one character changed, at every place."""
    return [
        text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :] for place in range(len(text))
    ]


GOOD = Cursor(3, {(0, 1): 7, (99, 2): 300}).text(BATCH)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "AAAA",
        "ä",
        "\0",
        "=",
        "a b",
        GOOD[:-1],
        GOOD + "A",
        GOOD[4:],
        "A" * (TEXT_CHARS_MAX + 1),
        GOOD.swapcase(),
    ],
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    """Other text, and a cursor cut short or lengthened, is a 400 that names the parameter."""
    with pytest.raises(InvalidRequest) as caught:
        Cursor.read(text, BATCH)
    assert (caught.value.code, caught.value.param) == ("invalid_value", "after")


def test_a_typing_error_is_refused() -> None:
    """Any one character of a cursor changed makes it none (the bits that pad its end aside)."""
    for text in changed(GOOD)[:-1]:
        with pytest.raises(InvalidRequest):
            Cursor.read(text, BATCH)


def test_another_batchs_cursor_is_refused() -> None:
    """A cursor is good for its own batch only."""
    with pytest.raises(InvalidRequest, match="no cursor of this batch"):
        Cursor.read(GOOD, BATCH[:-1] + ("a" if BATCH[-1] != "a" else "b"))


def test_another_version_is_refused() -> None:
    """A cursor of a later version of Gridline is not misread."""
    data = urlsafe_b64decode(GOOD + "=" * (-len(GOOD) % 4))
    with pytest.raises(InvalidRequest):
        Cursor.read(urlsafe_b64encode(b"\2" + data[1:]).rstrip(b"=").decode(), BATCH)
