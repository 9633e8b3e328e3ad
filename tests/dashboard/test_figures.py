"""Figures and words as the pages show them."""

from datetime import UTC, datetime, timedelta

import pytest

from dashboard import errors_table, figures, markup, words
from gridline.client import Limit, LineError

AT = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("nanos", "shown"),
    [
        (0, "0.00 credits"),
        (1, "0.000000001 credits"),
        (1_500_000_000, "1.50 credits"),
        (-250_000_000, "-0.25 credits"),
        (12_345_678_901_234_567_890, "12,345,678,901.23456789 credits"),
    ],
)
def test_amounts_are_exact_and_have_a_unit(nanos: int, shown: str) -> None:
    """No digit that counts is dropped or rounded, however large or small the amount."""
    assert figures.amount(nanos) == shown


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(seconds=3), "just now"),
        (timedelta(seconds=-3), "just now"),
        (timedelta(seconds=59), "59 s ago"),
        (timedelta(minutes=61), "1 h ago"),
        (timedelta(days=-2), "in 2 d"),
    ],
)
def test_relative_times(ago: timedelta, shown: str) -> None:
    """A time reads in its largest unit, in the past and in the future."""
    assert figures.relative(AT - ago, AT) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-1, "0 s"),
        (42, "42 s"),
        (65, "1 min 5 s"),
        (720, "12 min"),
        (3_900, "1 h 5 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_durations(seconds: int, shown: str) -> None:
    """A span keeps the second unit where it still says something."""
    assert figures.duration(timedelta(seconds=seconds)) == shown


@pytest.mark.parametrize(
    ("name", "limit", "shown"),
    [
        ("open_batches", Limit(2, 1), "1 of 2"),
        ("stored_bytes", Limit(20_000_000_000, 48_120_300), "48.1 MB of 20.0 GB"),
        ("daily_credits", Limit("100.000000000", None), "100.00 credits"),
    ],
)
def test_limits_show_use_and_unit(name: str, limit: Limit, shown: str) -> None:
    """A limit says how much of it is used, in its own unit."""
    assert figures.limit(name, limit) == shown


def test_unknown_names_still_read_well() -> None:
    """A status, event or wait that a newer API has is shown in its own words, not as an error."""
    assert words.status("half_done").text == "Half done"
    assert words.event("line.retried").text == "Line retried"
    assert words.wait("solar_flare") == "(solar flare)"
    assert words.endpoint("/v1/responses") == "Responses"
    assert words.endpoint("/v1/other") == "/v1/other"


def test_markup_escapes_whatever_is_put_in() -> None:
    """No text gets out of its place in the markup, in a body or in an attribute."""
    hostile = "\"'><script>alert(1)</script>"
    drawn = [
        markup.callout("red", "error", hostile, hostile, small=hostile),
        markup.facts([(hostile, hostile)]),
        markup.bar([("green", 1)], total=2, label=hostile),
        markup.joined([hostile]),
    ]
    for one in drawn:
        assert "<script>" not in one
        assert "\"'>" not in one


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_cells_are_never_formulas(start: str) -> None:
    """A message that a spreadsheet would run is written with an apostrophe before it."""
    text = errors_table.as_csv([LineError("c", f"{start}cmd()", f"{start}p", 3)]).decode()
    header, row = text.split("\r\n", maxsplit=1)
    assert header == "Line,Code,Parameter,Message"
    assert row.count(f"'{start}") == 2
    assert row.startswith("3,c,")


def test_the_table_keeps_line_numbers_whole() -> None:
    """A problem of the whole file has no line, and the others' lines stay whole numbers."""
    table = errors_table.frame([LineError("a", "m", None, 7), LineError("b", "m", "p", None)])
    assert table["Line"].iloc[0] == 7
    assert str(table["Line"].dtype) == "Int64"
    assert table["Line"].isna().to_list() == [False, True]
