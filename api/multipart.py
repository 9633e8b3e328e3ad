"""Reads a multipart form while it streams: fields in any order, one file, memory flat whatever comes.

What the parts mean is the receiver's matter; here are only their number, their size and their syntax.
"""

from typing import Protocol

from flask import request
from werkzeug.exceptions import UnsupportedMediaType
from werkzeug.sansio import multipart as parts

from gridline import limits
from gridline.errors import InvalidRequest

CHUNK_BYTES = 256 * 1024
# What the decoder may hold at once: a chunk, a part's head, and what could still be a boundary.
_BUFFER_BYTES = 2 * CHUNK_BYTES


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
        InvalidRequest: no boundary, cut short, a broken part, or too many or too large text fields.
    """
    if request.mimetype != "multipart/form-data":
        raise UnsupportedMediaType
    boundary = request.mimetype_params.get("boundary", "")
    if not boundary or not boundary.isascii():
        raise InvalidRequest("The multipart body names no boundary.", code="invalid_multipart")
    decoder = parts.MultipartDecoder(
        boundary.encode(), max_form_memory_size=_BUFFER_BYTES, max_parts=limits.FORM_PARTS_MAX
    )
    reader = _Reader(form)
    while not reader.over:
        decoder.receive_data(request.stream.read(CHUNK_BYTES) or None)
        reader.take(decoder)


class _Reader:
    """Turns the decoder's events into calls of the form."""

    def __init__(self, form: Form) -> None:
        self.over = False
        self._form = form
        self._field: str | None = None
        self._value = bytearray()

    def take(self, decoder: parts.MultipartDecoder) -> None:
        """Handle every event that the bytes so far make."""
        while not self.over:
            try:
                event = decoder.next_event()
            except ValueError as error:
                raise InvalidRequest(
                    "The multipart body is broken or cut short. Send it again.", code="invalid_multipart"
                ) from error
            if isinstance(event, parts.NeedData):
                return
            self._handle(event)

    def _handle(self, event: parts.Event) -> None:
        if isinstance(event, parts.Field):
            self._field = _named(event.name)
            self._value.clear()
        elif isinstance(event, parts.File):
            self._field = None
            self._form.begin_file(_named(event.name), event.filename)
        elif isinstance(event, parts.Data):
            self._data(event)
        elif isinstance(event, parts.Epilogue):
            self.over = True

    def _data(self, event: parts.Data) -> None:
        if self._field is None:
            if event.data:
                self._form.data(event.data)
            return
        self._value += event.data
        if len(self._value) > limits.FORM_FIELD_BYTES_MAX:
            raise InvalidRequest(
                f"A form field is larger than {limits.FORM_FIELD_BYTES_MAX} bytes.", code="invalid_multipart"
            )
        if not event.more_data:
            self._form.field(self._field, self._value.decode(errors="replace"))


def _named(name: str | None) -> str:
    if not name:
        raise InvalidRequest("A part of the multipart body has no name.", code="invalid_multipart")
    return name[: limits.METADATA_KEY_CHARS_MAX]
