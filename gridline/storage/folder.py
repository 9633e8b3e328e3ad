"""Objects as files below one folder, durable before they are visible.

obstore's local puts rename without fsync, so that after a power loss a committed row could name an empty
file; that is why this part is our own.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from gridline.storage.errors import ObjectMissing, StoreUnavailable

# Unfinished objects live here, on the same file system, under a name that no key can have: a killed
# writer's leftovers are never listed and are easy to sweep.
INCOMING = ".incoming"
WRITE_BACK_BYTES = 8 * 1024 * 1024
"""A long object goes to the disk in such steps while it is written, so that the fsync at its end is short."""


class Folder:
    """A local folder of objects."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put_once(self, key: str, data: bytes) -> bool:
        """Create durably; False when it exists."""
        target = self.root / key
        with _translated():
            if target.exists():
                # Its maker may have died between link and fsync; who is told "it stands" may rely on it.
                _fsync_folder(target.parent)
                return False
            with self._incoming() as part:
                part.write(data)
                return self._show(part, target, overwrite=False)

    def replace(self, key: str, data: bytes) -> None:
        """Create or overwrite durably."""
        with _translated(), self._incoming() as part:
            part.write(data)
            self._show(part, self.root / key, overwrite=True)

    @contextmanager
    def writer(self, key: str) -> Iterator["FileWriter"]:
        """Visible as a whole at the end of the block, or not at all."""
        with _translated():
            incoming = self._incoming()
            part = incoming.__enter__()
        try:
            yield FileWriter(part)
            with _translated():
                self._show(part, self.root / key, overwrite=True)
        finally:
            incoming.__exit__(None, None, None)

    def read(self, key: str) -> bytes:
        """All bytes; raises ObjectMissing."""
        try:
            with _translated():
                return (self.root / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise ObjectMissing(key) from error

    def size(self, key: str) -> int | None:
        """Bytes, or None when missing."""
        path = self.root / key
        try:
            with _translated():
                return path.stat().st_size if path.is_file() else None
        except FileNotFoundError:
            return None

    def stream(self, key: str, start: int, end: int, chunk_bytes: int) -> Iterator[bytes]:
        """Bytes start to end (exclusive, within the object)."""
        # Opened by the call, not at the first chunk: a reader that began keeps a deleted object's bytes.
        return _chunks(self.open_file(key), start, end, chunk_bytes)

    def open_file(self, key: str) -> BinaryIO:
        """The object as an open file; raises ObjectMissing."""
        try:
            with _translated():
                return (self.root / key).open("rb")
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error

    def list(self, prefix: str) -> list[str]:
        """Keys, in any order."""
        keys = []
        with _translated():
            for folder, names, files in os.walk(self.root / prefix.rpartition("/")[0]):
                names[:] = [name for name in names if name != INCOMING]
                base = Path(folder).relative_to(self.root)
                keys += [(base / name).as_posix() for name in files]
        return [key for key in keys if key.startswith(prefix)]

    def modified(self, prefix: str) -> dict[str, datetime]:
        """Keys, in any order, each with the instant it was last written."""
        found = {}
        for key in self.list(prefix):
            # Deleted since it was listed: as good as never seen.
            with suppress(FileNotFoundError, NotADirectoryError), _translated():
                found[key] = datetime.fromtimestamp((self.root / key).stat().st_mtime, UTC)
        return found

    def delete(self, key: str) -> None:
        """Remove; missing is fine."""
        path = self.root / key
        try:
            with _translated():
                path.unlink()
                _fsync_folder(path.parent)
        except (FileNotFoundError, NotADirectoryError):
            return

    def tidy(self, prefix: str) -> None:
        """Drop the empty folders of a prefix."""
        with _translated():
            for folder, _, _ in os.walk(self.root / prefix, topdown=False):
                with suppress(OSError):
                    Path(folder).rmdir()

    def drop_unfinished(self, before: datetime) -> int:
        """Remove what killed writers left, last written before this instant."""
        gone = 0
        with _translated():
            for path in (self.root / INCOMING).glob("*"):
                # Shown or dropped since it was listed: nothing is left to do.
                with suppress(FileNotFoundError):
                    if datetime.fromtimestamp(path.stat().st_mtime, UTC) < before:
                        path.unlink()
                        gone += 1
        return gone

    @contextmanager
    def _incoming(self) -> Iterator[BinaryIO]:
        folder = self.root / INCOMING
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with path.open("xb") as part:
                yield part
        finally:
            path.unlink(missing_ok=True)

    def _show(self, part: BinaryIO, target: Path, *, overwrite: bool) -> bool:
        """Bytes to the disk, then the name, then the folder's entry to the disk."""
        part.flush()
        os.fsync(part.fileno())
        _make_folder(target.parent)
        try:
            if overwrite:
                Path(part.name).replace(target)
            else:
                # link, unlike rename, fails when the name is taken: one maker, whatever the race.
                os.link(part.name, target)
        except FileExistsError:
            return False
        finally:
            _fsync_folder(target.parent)
        return True


class FileWriter:
    """Appends to an object that is not visible yet."""

    def __init__(self, part: BinaryIO) -> None:
        self._part = part
        self._written = self._sent = 0

    def write(self, data: bytes) -> None:
        """Append bytes."""
        with _translated():
            self._part.write(data)
            self._written += len(data)
            if self._written - self._sent >= WRITE_BACK_BYTES:
                self._write_back()

    def _write_back(self) -> None:
        """Have the disk begin with what is new, without waiting for it."""
        self._part.flush()
        new = self._written - self._sent
        # What is not on the disk yet cannot be dropped from memory: the advice only begins to write it.
        os.posix_fadvise(self._part.fileno(), self._sent, new, os.POSIX_FADV_DONTNEED)
        self._sent = self._written


def _chunks(source: BinaryIO, start: int, end: int, chunk_bytes: int) -> Iterator[bytes]:
    with source:
        source.seek(start)
        left = end - start
        while left > 0:
            with _translated():
                chunk = source.read(min(chunk_bytes, left))
            if not chunk:
                return
            left -= len(chunk)
            yield chunk


def _make_folder(folder: Path) -> None:
    """Make the folder; each new entry reaches the disk, or the object could vanish with its folder."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        _fsync_folder(one.parent)


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _translated() -> Iterator[None]:
    """A missing file passes as it is; every other fault of the disk is "away for now"."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise
    except OSError as error:
        raise StoreUnavailable(
            f"The object store's folder cannot be used: {error.strerror or error}."
        ) from error
