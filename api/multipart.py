"""Reads a multipart form while it streams: fields in any order, one file, memory flat whatever comes.

What the parts mean is the receiver's matter; here are only their number, their size and their syntax.
"""

from collections.abc import Iterator
from typing import Protocol

import multipart
from flask import request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.http import parse_options_header

from gridline import limits
from gridline.errors import InvalidRequest

CHUNK_BYTES = 1024 * 1024
# A part's head holds a file's name, which is refused by its length, not by its head's.
_HEAD_LINE_BYTES_MAX = 64 * 1024
# What may stand before the first part. Nothing should.
_PREAMBLE_BYTES_MAX = 2 * CHUNK_BYTES
_BOUNDARY_CHARS_MAX = 200


class Form(Protocol):
    """Takes the parts of a form as they come."""

    def field(self, name: str, value: str) -> None:
        """A whole text field."""

    def begin_file(self, name: str, filename: str) -> None:
        """A file's bytes follow."""

    def data(self, data: bytes) -> None:
        """Bytes of the file that began last."""


def read_form(form: Form) -> None:
    """Feed the request's body to ``form``, part by part.

    Raises:
        UnsupportedMediaType: not sent as ``multipart/form-data``.
        RequestEntityTooLarge: too many parts, too long a head, or endless bytes before the first part.
        InvalidRequest: no boundary, cut short, a broken part, or a too large text field.
    """
    if request.mimetype != "multipart/form-data":
        raise UnsupportedMediaType
    boundary = request.mimetype_params.get("boundary", "")
    if not boundary or not boundary.isascii() or len(boundary) > _BOUNDARY_CHARS_MAX:
        raise InvalidRequest("The multipart body names no boundary.", code="invalid_multipart")
    reader = _Reader(form)
    try:
        for event in _events(boundary):
            reader.take(event)
    except multipart.ParserLimitReached as error:
        raise RequestEntityTooLarge from error
    except multipart.MultipartError as error:
        raise InvalidRequest(
            "The multipart body is broken or cut short. Send it again.", code="invalid_multipart"
        ) from error


def _events(boundary: str) -> Iterator[multipart.MultipartSegment | bytes | None]:
    """The parser's events: a part's head, pieces of its content, None at its end."""
    parser = multipart.PushMultipartParser(
        boundary, max_segment_count=limits.FORM_PARTS_MAX, max_header_size=_HEAD_LINE_BYTES_MAX
    )
    part: multipart.MultipartSegment | None = None
    preamble_bytes = 0
    passing = False
    while not parser.closed:
        chunk = request.stream.read1(CHUNK_BYTES)  # type: ignore[attr-defined]
        if passing and part and chunk and b"\r" not in chunk:
            # No boundary is in it, so it need not be searched for one: most of a file goes this way.
            part.bytes_received += len(chunk)
            yield chunk
            continue
        event: multipart.MultipartSegment | bytes | None = None
        for event in parser.parse(chunk):
            part = event if isinstance(event, multipart.MultipartSegment) else part
            yield event
        if part is None:
            preamble_bytes += len(chunk)
            if preamble_bytes > _PREAMBLE_BYTES_MAX:
                raise multipart.ParserLimitReached("Endless bytes before the first part.")
        # In the middle of a part's content, and the parser holds back nothing that could begin a boundary.
        passing = isinstance(event, bytes) and b"\r" not in chunk[-len(boundary) - 8 :]


class _Reader:
    """Turns the parser's events into calls of the form."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._field: str | None = None
        self._value = bytearray()

    def take(self, event: multipart.MultipartSegment | bytes | None) -> None:
        """Handle one event."""
        if isinstance(event, multipart.MultipartSegment):
            self._begin(event)
        elif self._field is None:
            if event:
                self._form.data(event)
        elif event is None:
            self._form.field(self._field, self._value.decode(errors="replace"))
        else:
            self._value += event
            if len(self._value) > limits.FORM_FIELD_BYTES_MAX:
                raise InvalidRequest(
                    f"A form field is larger than {limits.FORM_FIELD_BYTES_MAX} bytes.",
                    code="invalid_multipart",
                )

    def _begin(self, part: multipart.MultipartSegment) -> None:
        # Not the parser's own reading, which takes off what looks like a folder, and knows no filename*.
        _, options = parse_options_header(part.header("Content-Disposition"))
        name, filename = options.get("name"), options.get("filename")
        if not name:
            raise InvalidRequest("A part of the multipart body has no name.", code="invalid_multipart")
        name = name[: limits.METADATA_KEY_CHARS_MAX]
        if filename is None:
            self._field = name
            self._value.clear()
        else:
            self._field = None
            self._form.begin_file(name, filename)
