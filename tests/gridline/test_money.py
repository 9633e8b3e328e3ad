"""Exact money: text and nano-credits are the same amount, both ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridline.money import NANOS_PER_CREDIT, credits_nanos, credits_text


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "0.000000000"),
        (1, "0.000000001"),
        (-1, "-0.000000001"),
        (NANOS_PER_CREDIT, "1.000000000"),
        (-1_500_000_000, "-1.500000000"),
        (10**30, "1" + "0" * 21 + ".000000000"),
    ],
)
def test_an_amount_has_one_text(nanos: int, text: str) -> None:
    """Amounts are written with nine digits after the point, below zero and far above any float's precision."""
    assert credits_text(nanos) == text
    assert credits_nanos(text) == nanos


@given(st.integers())
def test_text_and_amount_are_inverse(nanos: int) -> None:
    """No amount changes by being written and read."""
    assert credits_nanos(credits_text(nanos)) == nanos


@pytest.mark.parametrize(
    ("text", "nanos"), [("2", 2 * 10**9), (" 0.5 ", 5 * 10**8), ("007.10", 7_100_000_000)]
)
def test_people_may_write_less_digits(text: str, nanos: int) -> None:
    """An operator types 2 or 0.5; the amount is exact."""
    assert credits_nanos(text) == nanos


@pytest.mark.parametrize(
    "text", ["", "1e3", "1.0000000001", "1,5", "+1", "--1", ".5", "1.", "NaN", "٣", "1_000"]
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    """Nothing is guessed and nothing is rounded."""
    with pytest.raises(ValueError, match="not an amount"):
        credits_nanos(text)
