"""Physical lines: numbers, ends, blank lines, the bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridline.lines.reading import physical_lines


def read(data: bytes, chunk: int = 7, **limits: int) -> list[tuple[int, bytes | None]]:
    """Lines of these bytes, arriving in small chunks."""
    chunks = [data[start : start + chunk] for start in range(0, len(data), chunk)]
    return [(line.number, line.data) for line in physical_lines(chunks, **limits)]


def test_case_2_bom_is_not_part_of_the_first_line() -> None:
    """A byte order mark is dropped from the start of the file and from nowhere else."""
    bom = b"\xef\xbb\xbf"
    assert read(bom + b"a\n" + bom + b"b\n") == [(1, b"a"), (2, bom + b"b")]


@pytest.mark.parametrize("data", [b"a\nb", b"a\nb\n", b"a\nb\n\n", b"a\r\nb\r\n", b"a\nb\n   \n\t\n"])
def test_case_3_line_ends_and_trailing_blanks(data: bytes) -> None:
    """Two requests stay two, however lines end and whatever blank lines follow."""
    assert read(data) == [(1, b"a"), (2, b"b")]


def test_case_3_numbers_count_blank_lines() -> None:
    """A line after a blank line keeps the number that an editor shows."""
    assert read(b"a\n   \n\nb\n") == [(1, b"a"), (4, b"b")]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf", b" \r\n"])
def test_case_3_nothing_there(data: bytes) -> None:
    """A file of blank lines has no lines."""
    assert read(data) == []


def test_case_12_long_line_is_counted_but_not_kept() -> None:
    """A line over the bound tells its size and is dropped; the lines around it are read."""
    lines = list(physical_lines([b"a\n", b"x" * 60, b"x" * 60, b"x\nb\n"], bytes_max=100))
    assert [(line.number, line.size, line.data) for line in lines] == [
        (1, 1, b"a"),
        (2, 121, None),
        (3, 1, b"b"),
    ]


@pytest.mark.parametrize(("size", "kept"), [(100, True), (101, False)])
def test_bound_is_inclusive(size: int, kept: bool) -> None:
    """A line of exactly the bound is kept; BOM and CR do not count."""
    (line,) = read(b"\xef\xbb\xbf" + b"x" * size + b"\r\n", bytes_max=100)
    assert (line[1] is not None) is kept


@pytest.mark.thorough
@given(st.lists(st.binary(max_size=12).filter(lambda one: b"\n" not in one)), st.integers(1, 9))
def test_chunks_do_not_matter(pieces: list[bytes], chunk: int) -> None:
    """However the bytes arrive, the same lines come out."""
    data = b"\n".join(pieces)
    assert read(data, chunk) == read(data, max(1, len(data)))
