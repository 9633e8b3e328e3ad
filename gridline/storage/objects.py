"""The object store as the rest of the code sees it: create-once objects under server-made keys.

Local folder and S3 differ in many small ways (order of a listing, deleting what is missing, a range past
the end, what a killed writer leaves). None of that passes this file.
"""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from gridline.errors import SettingInvalid
from gridline.storage.bucket import Bucket
from gridline.storage.errors import KeyRefused, ObjectMissing
from gridline.storage.folder import Folder

__all__ = ["ObjectMissing", "ObjectWriter", "Store"]

_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_.=-]*"
_KEY = re.compile(rf"{_SEGMENT}(/{_SEGMENT})*")
_PREFIX = re.compile(rf"({_SEGMENT}/)*({_SEGMENT})?")


class ObjectWriter(Protocol):
    """Takes an object's bytes piece by piece."""

    def write(self, data: bytes) -> None:
        """Append bytes."""


class Backend(Protocol):
    """What a place of objects must do; keys arrive checked."""

    def put_once(self, key: str, data: bytes) -> bool:
        """Create durably; False when it exists."""

    def replace(self, key: str, data: bytes) -> None:
        """Create or overwrite durably."""

    def read(self, key: str) -> bytes:
        """All bytes; raises ObjectMissing."""

    def size(self, key: str) -> int | None:
        """Bytes, or None when missing."""

    def stream(self, key: str, start: int, end: int, chunk_bytes: int) -> Iterator[bytes]:
        """Bytes start to end (exclusive, within the object)."""

    def open_file(self, key: str) -> BinaryIO | None:
        """The object as an open file; None where objects are no files."""

    def writer(self, key: str) -> AbstractContextManager[ObjectWriter]:
        """Visible as a whole at the end of the block, or not at all."""

    def list(self, prefix: str) -> list[str]:
        """Keys, in any order."""

    def modified(self, prefix: str) -> dict[str, datetime]:
        """Keys, in any order, each with the instant it was last written."""

    def delete(self, key: str) -> None:
        """Remove; missing is fine."""

    def tidy(self, prefix: str) -> None:
        """Drop what an empty prefix leaves behind."""

    def drop_unfinished(self, before: datetime) -> int:
        """Remove what killed writers left, last written before this instant."""


class Store:
    """Objects under keys; durable once a call has returned."""

    def __init__(self, url: str) -> None:
        """Open the store at ``file:///folder`` or ``s3://bucket/prefix`` (credentials: the usual AWS_ names).

        Raises:
            SettingInvalid: another scheme, or a relative folder.
        """
        self.url = url
        self._backend = _backend(url)

    def put_once(self, key: str, data: bytes) -> bool:
        """Create the object; True: this call made it, False: it stood already and is unchanged."""
        return self._backend.put_once(_checked(key), data)

    def replace(self, key: str, data: bytes) -> None:
        """Create or overwrite: for progress and stop objects only, everything else is written once."""
        self._backend.replace(_checked(key), data)

    def read(self, key: str) -> bytes:
        """All bytes of the object.

        Raises:
            ObjectMissing: there is none.
        """
        return self._backend.read(_checked(key))

    def read_or_none(self, key: str) -> bytes | None:
        """All bytes of the object, or None when there is none."""
        try:
            return self._backend.read(_checked(key))
        except ObjectMissing:
            return None

    def size(self, key: str) -> int | None:
        """The object's size in bytes, or None when there is none."""
        return self._backend.size(_checked(key))

    def stream(
        self, key: str, *, start: int = 0, end: int | None = None, chunk_bytes: int = 1 << 20
    ) -> Iterator[bytes]:
        """The object's bytes from start to end (exclusive) in chunks; nothing when start is past its end.

        Raises:
            ObjectMissing: there is none; raised by the call, before the first chunk.
        """
        size = self._backend.size(_checked(key))
        if size is None:
            raise ObjectMissing(key)
        last = size if end is None else min(end, size)
        return self._backend.stream(key, start, last, chunk_bytes) if start < last else iter(())

    def open_file(self, key: str) -> BinaryIO | None:
        """The object as an open file, whose bytes stay even when it is deleted; None where objects are no files.

        Raises:
            ObjectMissing: there is none.
        """
        return self._backend.open_file(_checked(key))

    def writer(self, key: str) -> AbstractContextManager[ObjectWriter]:
        """A block that writes an object of any size in flat memory.

        It is visible, whole and durable, once the block has ended; an exception in the block leaves nothing.
        """
        return self._backend.writer(_checked(key))

    def list(self, prefix: str) -> list[str]:
        """Every key that begins with the prefix, sorted."""
        return sorted(self._backend.list(_checked_prefix(prefix)))

    def modified(self, prefix: str) -> dict[str, datetime]:
        """Every key that begins with the prefix, sorted, with the instant it was last written (by the store's clock)."""
        return dict(sorted(self._backend.modified(_checked_prefix(prefix)).items()))

    def delete(self, key: str) -> None:
        """Remove the object; a missing one is fine."""
        self._backend.delete(_checked(key))

    def delete_prefix(self, prefix: str) -> int:
        """Remove every object under the prefix (not empty) and say how many there were."""
        if not prefix:
            raise KeyRefused("An empty prefix would delete the whole store.")
        keys = self.list(prefix)
        for key in keys:
            self._backend.delete(key)
        self._backend.tidy(prefix)
        return len(keys)

    def drop_unfinished(self, before: datetime) -> int:
        """Remove what writers that were killed left of objects that nobody ever saw; how many there were.

        ``before``: those last written before this instant (by the store's clock): a live writer's are younger.
        """
        return self._backend.drop_unfinished(before)


def _backend(url: str) -> Backend:
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path.startswith("/"):
        return Folder(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        return Bucket(url)
    raise SettingInvalid(f"GRIDLINE_STORE_URL must be file:///folder or s3://bucket/prefix, got {url!r}.")


def _checked(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise KeyRefused(f"{key!r} is not a key of the store.")
    return key


def _checked_prefix(prefix: str) -> str:
    if not _PREFIX.fullmatch(prefix):
        raise KeyRefused(f"{prefix!r} is not a prefix of keys of the store.")
    return prefix
