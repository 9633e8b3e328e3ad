"""Answers a download with its bytes: the whole or one range, streamed, never a wrong or half slice."""

from collections.abc import Iterable, Iterator
from itertools import chain
from urllib.parse import quote

from flask import Response, request
from werkzeug.exceptions import RequestedRangeNotSatisfiable
from werkzeug.http import parse_range_header

from gridline.files.tables import File
from gridline.storage.objects import Store


def download(store: Store, file: File) -> Response:
    """The file's bytes, or the one range that was asked for (several ranges get the whole).

    Raises:
        ObjectMissing: deleted a moment ago.
        RequestedRangeNotSatisfiable: a range outside the file.
    """
    span = _span(file)
    start, end = span or (0, file.bytes)
    body = _body(store, file, start=start, end=end) if end > start else ()
    response = Response(
        body, status=206 if span else 200, content_type="application/jsonl", direct_passthrough=True
    )
    response.headers["Content-Length"] = str(end - start)
    response.headers["Accept-Ranges"] = "bytes"
    response.headers["ETag"] = _etag(file)
    response.headers["Cache-Control"] = "private, no-store"
    response.headers["Content-Disposition"] = _disposition(file.filename)
    if span:
        response.headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.bytes}"
    return response


def _span(file: File) -> tuple[int, int] | None:
    asked = parse_range_header(request.headers.get("Range"))
    if asked is None or asked.units != "bytes" or len(asked.ranges) != 1:
        return None
    if request.headers.get("If-Range", _etag(file)) != _etag(file):
        return None
    span = asked.range_for_length(file.bytes)
    if span is None:
        raise RequestedRangeNotSatisfiable(length=file.bytes)
    return span


def _body(store: Store, file: File, *, start: int, end: int) -> Iterable[bytes]:
    """What the server sends: an open file where it can, since that waits for a slow reader at no cost."""
    wrap = request.environ.get("wsgi.file_wrapper")
    opened = store.open_file(file.object_key) if wrap else None
    if wrap is None or opened is None:
        return _opened(store.stream(file.object_key, start=start, end=end))
    opened.seek(start)
    # The server stops at the answer's Content-Length.
    sent: Iterable[bytes] = wrap(opened)
    return sent


def _opened(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same chunks with the first one read: what is missing shows before the answer's head is sent."""
    first = next(chunks, b"")
    return chain((first,), chunks)


def _etag(file: File) -> str:
    return f'"{file.sha256}"'


def _disposition(filename: str) -> str:
    plain = filename.encode("ascii", errors="replace").decode().replace("\\", "_").replace('"', "_")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"
