"""Physical lines out of a stream of bytes, in flat memory. Knows nothing of what a line says."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gridline.limits import LINE_BYTES_MAX

BOM = b"\xef\xbb\xbf"
OPENING, CLOSING = b"{}"


class PhysicalLine(NamedTuple):
    """One line that is not blank."""

    number: int
    """Physical line of the file, from 1, blank lines counted."""
    size: int
    """Bytes without the line's end."""
    data: bytes | None
    """The bytes without BOM and line end; None when there are more than the limit allows."""


def physical_lines(chunks: Iterable[bytes], *, bytes_max: int = LINE_BYTES_MAX) -> Iterator[PhysicalLine]:
    """Every line that is not blank. Lines end with LF or CRLF; a BOM before the first one is not part of it.

    A line over ``bytes_max`` is counted but not kept: at most that many bytes and one chunk are held.
    """
    number, size = 1, 0
    held: list[bytes] = []
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            size_here = len(piece)
            if (
                not size
                and number > 1
                and 1 < size_here <= bytes_max
                and piece[-1] == CLOSING
                and piece[0] == OPENING
            ):
                # What nearly every line is, and this is where all of a file's bytes pass.
                yield PhysicalLine(number, size_here, piece)
                number += 1
                continue
            line = _line(number, size + len(piece), b"".join([*held, piece]) if held else piece, bytes_max)
            if line is not None:
                yield line
            number += 1
            if held or size:
                size, held = 0, []
        size += len(rest)
        if rest and size <= bytes_max + len(BOM) + 1:
            held.append(rest)
        elif rest:
            held = []
    line = _line(number, size, b"".join(held), bytes_max)
    if line is not None:
        yield line


def _line(number: int, size: int, data: bytes, bytes_max: int) -> PhysicalLine | None:
    """The line, or None when it is blank; ``size`` counts what was not kept too."""
    if size > bytes_max + len(BOM) + 1:
        return PhysicalLine(number, size, None)
    if data.endswith(b"\r"):
        data = data[:-1]
    if number == 1:
        data = data.removeprefix(BOM)
    if not data or data.isspace():
        return None
    return PhysicalLine(number, len(data), data if len(data) <= bytes_max else None)
