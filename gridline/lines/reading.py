"""Physical lines out of a stream of bytes, in flat memory. Knows nothing of what a line says."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gridline.limits import LINE_BYTES_MAX

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class PhysicalLine:
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
            size += len(piece)
            yield from _line(number, size, [*held, piece], bytes_max)
            number, size, held = number + 1, 0, []
        size += len(rest)
        if rest and size <= bytes_max + len(BOM) + 1:
            held.append(rest)
        elif rest:
            held = []
    yield from _line(number, size, held, bytes_max)


def _line(number: int, size: int, pieces: list[bytes], bytes_max: int) -> Iterator[PhysicalLine]:
    """The line, or nothing when it is blank."""
    if size > bytes_max + len(BOM) + 1:
        yield PhysicalLine(number, size, None)
        return
    data = b"".join(pieces).removesuffix(b"\r")
    if number == 1:
        data = data.removeprefix(BOM)
    if data and not data.isspace():
        yield PhysicalLine(number, len(data), data if len(data) <= bytes_max else None)
