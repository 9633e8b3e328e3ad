"""What goes wrong in a simulated world: calls that are refused, answers that are lost, processes that die.

Every call of the store and every transaction is also a moment at which somebody else may act first: that is how one
thread comes to every order that processes side by side could have.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from random import Random
from types import TracebackType
from typing import BinaryIO

from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, SessionTransaction

from gridline.storage import ObjectMissing, Store, StoreUnavailable


class Crash(BaseException):
    """The process at work dies here. No error, so that nothing of ours can handle it."""


@dataclass
class Faults:
    """How often what goes wrong; ``rate`` scales all of it, and 0 is a world without a fault."""

    random: Random
    rate: float
    elsewhere: Callable[[], None]
    """Lets somebody else act."""
    overlap: float = 0.05
    """How often somebody else acts in the middle of another's step."""
    open_transactions: int = 0
    healed: bool = False

    def strike(self, share: float) -> bool:
        """Whether this fault comes now."""
        return not self.healed and self.rate > 0 and self.random.random() < self.rate * share

    def pause(self) -> None:
        """A moment at which others may act first; never while a transaction is open, whose locks they would meet."""
        if self.open_transactions == 0 and self.random.random() < self.overlap:
            self.elsewhere()

    @contextmanager
    def writing(self, away: Callable[[], Exception]) -> Iterator[None]:
        """A write that is refused, done, or done without anybody hearing of it."""
        self.pause()
        if self.strike(0.02):
            raise away()
        if self.strike(0.008):
            raise Crash
        yield
        if self.strike(0.01):
            raise away()
        if self.strike(0.008):
            raise Crash
        self.pause()


def _store_away() -> Exception:
    return StoreUnavailable("The simulated store is away.")


def _database_away() -> Exception:
    return OperationalError("simulated", {}, Exception("the simulated database is away"))


class Objects:
    """Objects in memory, with the promises of the real places: created once, whole or not at all."""

    def __init__(self, faults: Faults, now: Callable[[], datetime]) -> None:
        self.data: dict[str, bytes] = {}
        self.written: dict[str, datetime] = {}
        self._faults, self._now = faults, now

    def put_once(self, key: str, data: bytes) -> bool:
        """Create; False when it exists."""
        with self._faults.writing(_store_away):
            made = key not in self.data
            if made:
                self._put(key, data)
        return made

    def replace(self, key: str, data: bytes) -> None:
        """Create or overwrite."""
        with self._faults.writing(_store_away):
            self._put(key, data)

    @contextmanager
    def writer(self, key: str) -> Iterator["Pieces"]:
        """Visible as a whole at the end of the block, or not at all."""
        pieces = Pieces()
        yield pieces
        with self._faults.writing(_store_away):
            self._put(key, b"".join(pieces.taken))

    def read(self, key: str) -> bytes:
        """All bytes."""
        self._look()
        if key not in self.data:
            raise ObjectMissing(key)
        return self.data[key]

    def size(self, key: str) -> int | None:
        """Bytes, or None when missing."""
        self._look()
        return len(self.data[key]) if key in self.data else None

    def stream(self, key: str, start: int, end: int, chunk_bytes: int) -> Iterator[bytes]:
        """Bytes start to end in chunks."""
        content = self.read(key)[start:end]
        return iter([content[at : at + chunk_bytes] for at in range(0, len(content), chunk_bytes)])

    def open_file(self, key: str) -> BinaryIO | None:
        """Objects are no files here."""
        return None

    def list(self, prefix: str) -> list[str]:
        """Keys."""
        self._look()
        return [key for key in self.data if key.startswith(prefix)]

    def modified(self, prefix: str) -> dict[str, datetime]:
        """Keys with the instant they were last written."""
        self._look()
        return {key: at for key, at in self.written.items() if key.startswith(prefix)}

    def drop_unfinished(self, before: datetime) -> int:  # the place's signature
        """Nothing: what a killed writer leaves here was never there."""
        self._look()
        return 0

    def delete(self, key: str) -> None:
        """Remove; missing is fine."""
        with self._faults.writing(_store_away):
            self.data.pop(key, None)
            self.written.pop(key, None)

    def tidy(self, prefix: str) -> None:
        """Nothing is left behind here."""

    def _look(self) -> None:
        self._faults.pause()
        if self._faults.strike(0.008):
            raise _store_away()

    def _put(self, key: str, data: bytes) -> None:
        self.data[key] = bytes(data)
        self.written[key] = self._now()


class Pieces:
    """An object on its way."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self.taken.append(bytes(data))


class SimStore(Store):
    """Production's store over objects in memory."""

    def __init__(self, objects: Objects) -> None:
        self.url = "simulated"
        self._backend = objects


def faulty_session(faults: Faults) -> type[Session]:
    """A session class whose outermost transaction meets the faults of a database."""

    class FaultySession(Session):
        """Production's session, on a database that is not always there."""

        def begin(self, nested: bool = False) -> SessionTransaction:
            if nested:
                return super().begin(nested)
            faults.pause()
            if faults.strike(0.01):
                raise _database_away()
            transaction: SessionTransaction = _Transaction(super().begin(), faults)  # type: ignore[assignment]
            return transaction

    return FaultySession


class _Transaction:
    """A transaction that may be refused at its commit, or whose commit nobody hears of."""

    def __init__(self, real: SessionTransaction, faults: Faults) -> None:
        self._real, self._faults = real, faults

    def __enter__(self) -> SessionTransaction:
        self._faults.open_transactions += 1
        return self._real.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            refused = error or self._refusal()
            if refused is not None:
                self._real.__exit__(type(refused), refused, trace)
            else:
                self._real.__exit__(None, None, None)
        finally:
            self._faults.open_transactions -= 1
        if error is None and refused is not None:
            raise refused
        if error is None:
            self._after()

    def _refusal(self) -> BaseException | None:
        if self._faults.strike(0.015):
            return _database_away()
        return Crash() if self._faults.strike(0.008) else None

    def _after(self) -> None:
        if self._faults.strike(0.01):
            raise _database_away()
        if self._faults.strike(0.008):
            raise Crash
        self._faults.pause()
