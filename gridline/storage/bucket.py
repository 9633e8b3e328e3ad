"""Objects in an S3 bucket, through obstore; S3 itself makes them durable before it answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from gridline.storage.errors import ObjectMissing, StoreUnavailable


class Bucket:
    """An S3 bucket, or a prefix in one; region, endpoint and credentials come from the usual AWS_ names."""

    def __init__(self, url: str) -> None:
        self._store = S3Store.from_url(url)

    def put_once(self, key: str, data: bytes) -> bool:
        """Create durably; False when it exists."""
        try:
            with _translated():
                obstore.put(self._store, key, data, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def replace(self, key: str, data: bytes) -> None:
        """Create or overwrite durably."""
        with _translated():
            obstore.put(self._store, key, data)

    def read(self, key: str) -> bytes:
        """All bytes; raises ObjectMissing."""
        try:
            with _translated():
                return bytes(obstore.get(self._store, key).bytes())
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error

    def size(self, key: str) -> int | None:
        """Bytes, or None when missing."""
        try:
            with _translated():
                return obstore.head(self._store, key)["size"]
        except FileNotFoundError:
            return None

    def stream(self, key: str, start: int, end: int, chunk_bytes: int) -> Iterator[bytes]:
        """Bytes start to end (exclusive, within the object)."""
        try:
            with _translated():
                answer = obstore.get(self._store, key, options={"range": (start, end)})
                for chunk in answer.stream(min_chunk_size=chunk_bytes):
                    yield bytes(chunk)
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error

    def open_file(self, key: str) -> None:
        """None: an object in a bucket is no file."""

    @contextmanager
    def writer(self, key: str) -> Iterator["PartsWriter"]:
        """Visible as a whole at the end of the block, or not at all."""
        with _translated():
            parts = obstore.open_writer(self._store, key)
            # obstore completes the upload when its block ends well and aborts it on an exception.
            with parts:
                yield PartsWriter(parts)

    def list(self, prefix: str) -> list[str]:
        """Keys, in any order."""
        return list(self.modified(prefix))

    def modified(self, prefix: str) -> dict[str, datetime]:
        """Keys, in any order, each with the instant it was last written."""
        # S3 through obstore lists whole segments only, so a partial last name is filtered here.
        folder = prefix.rpartition("/")[0]
        with _translated():
            found = {
                meta["path"]: meta["last_modified"]
                for page in obstore.list(self._store, folder or None)
                for meta in page
            }
        return {key: moment for key, moment in found.items() if key.startswith(prefix)}

    def delete(self, key: str) -> None:
        """Remove; missing is fine."""
        try:
            with _translated():
                obstore.delete(self._store, key)
        except FileNotFoundError:
            return

    def tidy(self, prefix: str) -> None:
        """Nothing: a bucket has no folders."""

    def drop_unfinished(self, before: datetime) -> int:  # noqa: ARG002  # the other backend's is the same call
        """Nothing: a bucket's own rule for incomplete uploads does it."""
        return 0


class PartsWriter:
    """Sends an object that is not visible yet in parts."""

    def __init__(self, parts: "obstore.WritableFile") -> None:
        self._parts = parts

    def write(self, data: bytes) -> None:
        """Append bytes."""
        with _translated():
            self._parts.write(data)


@contextmanager
def _translated() -> Iterator[None]:
    """A missing or standing object passes as it is; every other answer is "away for now"."""
    try:
        yield
    except (FileNotFoundError, AlreadyExistsError):
        raise
    except (BaseError, OSError) as error:
        raise StoreUnavailable("The object store did not answer as it should. Look at the log.") from error
