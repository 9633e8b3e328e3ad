"""What can be told about an input while its bytes stream past: size, encoding, first line, number of requests.

Line by line checking comes with the batch (gridline.lines). Memory is bounded by one line, whatever arrives.
"""

import re
import struct

import jiter

from gridline import limits
from gridline.files.errors import FileRefused, FileTooLarge

_BOM = b"\xef\xbb\xbf"
_BLANK = re.compile(rb"\s*")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
}
_HEAD_BYTES = 6


def check_filename(filename: str) -> str:
    """The name, if an input may have it. It is echoed and never becomes a path.

    Raises:
        FileRefused: no name, too long, control characters, or not ``.jsonl``.
    """
    if len(filename) > limits.FILENAME_CHARS_MAX:
        raise FileRefused(
            f"The file's name has {len(filename)} characters; at most {limits.FILENAME_CHARS_MAX} are taken. "
            "Upload it under a shorter name."
        )
    if any(ord(char) < ord(" ") or char == "\x7f" for char in filename):
        raise FileRefused("The file's name holds control characters. Upload it under another name.")
    if not filename.lower().endswith(".jsonl"):
        raise FileRefused("Invalid file format for Batch API. Must be .jsonl")
    return filename


class InputCheck:
    """Fed every chunk in order, then ``finish``; raises at the first thing that makes the file useless."""

    def __init__(self, *, bytes_max: int, lines_max: int) -> None:
        self._bytes_max = bytes_max
        self._lines_max = lines_max
        self._cut = b""
        self._bytes = 0
        self._requests = 0
        self._in_line = False
        self._head: bytes | None = b""
        self._first: bytearray | None = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Check the next bytes.

        Raises:
            FileTooLarge: over the cap of bytes or requests.
            FileRefused: compressed, not UTF-8, or a first line that is not JSON.
        """
        self._bytes += len(chunk)
        if self._bytes > self._bytes_max:
            raise too_many_bytes(self._bytes_max)
        if self._head is not None:
            self._head += chunk
            if len(self._head) >= _HEAD_BYTES:
                self._begin()
            return
        self._take(chunk)

    def finish(self) -> None:
        """Check what only the end can tell.

        Raises:
            FileRefused: empty, cut in the middle of a character, or a first line that is not JSON.
        """
        if self._bytes == 0:
            raise FileRefused("The file is empty. Upload one with a request on each line.", code="empty_file")
        if self._head is not None:
            self._begin()
        self._decode(b"", final=True)
        if self._first is not None:
            self._parse(bytes(self._first))

    def _begin(self) -> None:
        """Look at the file's first bytes together, however they were cut: they tell what it is."""
        head, self._head = self._head or b"", None
        for magic, name in _COMPRESSED.items():
            if head.startswith(magic):
                raise FileRefused(f"The file is compressed ({name}). Unpack it and upload the .jsonl itself.")
        if head.startswith(_UTF16) or b"\0" in head:  # no JSON holds a null byte
            raise FileRefused(
                "The file looks like UTF-16. It must be UTF-8 encoded: save it as UTF-8 and upload it again.",
                code="invalid_encoding",
            )
        self._take(head)

    def _take(self, chunk: bytes) -> None:
        self._decode(chunk, final=False)
        self._count(chunk)
        if self._first is not None:
            self._first_line(chunk)

    def _decode(self, chunk: bytes, *, final: bool) -> None:
        """Hold the bytes to be UTF-8; a character that the chunk's end cuts waits for the next chunk."""
        if chunk.isascii() and not self._cut:
            return
        data = self._cut + chunk
        whole = len(data) if final else _whole_characters(data)
        self._cut = data[whole:]
        try:
            _hold_utf8(data, whole)
        except UnicodeDecodeError as error:
            near = max(self._bytes - len(data) + error.start, 0)
            raise FileRefused(
                f"The file must be UTF-8 encoded, and near byte {near} it is not. "
                "Save it as UTF-8 and upload it again.",
                code="invalid_encoding",
            ) from error

    def _count(self, chunk: bytes) -> None:
        """Count lines that are not blank, in steps of whole lines rather than of bytes."""
        position = 0
        if self._in_line:
            position = chunk.find(b"\n") + 1
            if position == 0:
                return
            self._in_line = False
        while (position := _end_of_blank(chunk, position)) < len(chunk):
            self._requests += 1
            if self._requests > self._lines_max:
                raise too_many_requests(self._lines_max)
            following = chunk.find(b"\n", position) + 1
            if following == 0:
                self._in_line = True
                return
            position = following

    def _first_line(self, chunk: bytes) -> None:
        """Gather the first line that is not blank, then hold it to be JSON."""
        first = self._first
        if first is None:
            return
        first += chunk
        if first.startswith(_BOM):
            del first[: len(_BOM)]
        del first[: _end_of_blank(first, 0)]
        end = first.find(b"\n")
        if end >= 0:
            self._parse(bytes(first[:end]))
            self._first = None
        elif len(first) > limits.LINE_BYTES_MAX:
            self._parse(bytes(first))

    def _parse(self, line: bytes) -> None:
        if not line:
            return
        if len(line) > limits.LINE_BYTES_MAX:
            raise FileRefused(
                f"The first line has more than {limits.LINE_BYTES_MAX} bytes, the most that a line may have.",
                code="line_too_large",
            )
        try:
            jiter.from_json(line, allow_inf_nan=False)
        except ValueError as error:
            raise FileRefused(
                f"The first line is not JSON ({error}). A batch file has one JSON object on each line.",
                code="invalid_json_line",
            ) from error


def too_many_bytes(bytes_max: int) -> FileTooLarge:
    """The refusal of a file with more bytes than the cap (inclusive)."""
    return FileTooLarge(
        f"The file is larger than {bytes_max} bytes, the most that one file may have. Split it into several.",
        param="file",
        limit={"name": "file_bytes", "limit": bytes_max, "unit": "bytes"},
    )


def too_many_requests(lines_max: int) -> FileTooLarge:
    """The refusal of a file with more requests than the cap (inclusive)."""
    return FileTooLarge(
        f"The file holds more than {lines_max} requests, the most that one file may have. Split it into several.",
        code="too_many_requests_in_file",
        param="file",
        limit={"name": "file_requests", "limit": lines_max, "unit": "requests"},
    )


def _end_of_blank(data: bytes | bytearray, start: int) -> int:
    if start < len(data) and data[start] > ord(" "):
        return start  # as at the beginning of nearly every line
    blank = _BLANK.match(data, start)
    return start if blank is None else blank.end()


def _whole_characters(data: bytes) -> int:
    """Bytes up to the end of the last character that is not cut."""
    for back in range(1, min(len(data), 3) + 1):
        byte = data[-back]
        if byte >= 0xC0:  # noqa: PLR2004 - the first byte of a character of several
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2  # noqa: PLR2004 - UTF-8's own numbers
            return len(data) - back if length > back else len(data)
        if byte < 0x80:  # noqa: PLR2004 - ASCII
            break
    return len(data)


def _hold_utf8(data: bytes, size: int) -> None:
    """Check the first ``size`` bytes without making a string of them, which would take most of an upload's time.

    Raises:
        UnicodeDecodeError: they are not UTF-8.
    """
    import pyarrow as pa

    offsets = pa.py_buffer(struct.pack("=2i", 0, size))
    text = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(data))
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        data[:size].decode()
