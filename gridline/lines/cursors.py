"""How far a batch's results were read, as text that a client hands back. It names nothing that is a secret."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from gridline.errors import InvalidRequest

VERSION = 1
CHECK_BYTES = 6
TEXT_CHARS_MAX = 16_384


@dataclass(frozen=True)
class Cursor:
    """What was read: how many refused lines, and of every attempt the number of the next segment to read."""

    refused: int = 0
    segments: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """By partition and attempt; an attempt of which nothing was read is left out."""

    def text(self, batch_id: str) -> str:
        """The cursor as url-safe text, good for this batch only."""
        numbers = [self.refused]
        for (partition, attempt), following in sorted(self.segments.items()):
            numbers += [partition, attempt, following]
        content = b"".join(map(_packed, numbers))
        return urlsafe_b64encode(_check(batch_id, content) + content).rstrip(b"=").decode()

    @classmethod
    def read(cls, text: str, batch_id: str) -> "Cursor":
        """The cursor that ``text`` made of.

        Raises:
            InvalidRequest: cut short, changed, of another batch, or of another version.
        """
        try:
            if len(text) > TEXT_CHARS_MAX:
                raise ValueError
            data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
            content = data[1 + CHECK_BYTES :]
            if data[: 1 + CHECK_BYTES] != _check(batch_id, content):
                raise ValueError
            refused, *rest = _unpacked(content)
            threes = zip(rest[::3], rest[1::3], rest[2::3], strict=True)
            return cls(refused, {(partition, attempt): following for partition, attempt, following in threes})
        except ValueError as error:
            raise InvalidRequest(
                "Invalid 'after': it is no cursor of this batch's results. Send the header Gridline-Next-Cursor of an "
                "earlier answer for the same batch as it is, or leave 'after' out to read from the beginning.",
                code="invalid_value",
                param="after",
            ) from error


def _check(batch_id: str, content: bytes) -> bytes:
    """Version, and a digest that tells a cursor of this batch from a typing error and from another's."""
    return (
        bytes([VERSION]) + sha256(b"%d:%s:" % (VERSION, batch_id.encode()) + content).digest()[:CHECK_BYTES]
    )


def _packed(number: int) -> bytes:
    """Seven bits a byte, lowest first, the eighth set on all but the last: most numbers here take one byte."""
    packed = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - the seven bits of the docstring
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)
    return bytes(packed)


def _unpacked(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield number
            number = shift = 0
    if shift:
        raise ValueError
