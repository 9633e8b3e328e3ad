"""A request's body on its way from the loop that receives it to the thread that reads it. Knows no HTTP."""

import sys
from collections import deque
from collections.abc import Callable
from threading import Condition

HELD_BYTES_MAX = 4 * 1024 * 1024
"""So much may wait for the thread; then the sender has to."""


class Flow:
    """Takes the place of waitress's buffer of a whole body, for one that is handled while it still arrives."""

    def __init__(self, first: bytes, wake: Callable[[], None]) -> None:
        """Begin with the bytes that came so far; ``wake`` makes the loop ask for room again."""
        self._pieces = deque([first])
        self._held = self._total = len(first)
        self._ended = self._dropping = self._refused = False
        self._wake = wake
        self._changed = Condition()

    def __len__(self) -> int:
        """Bytes received, read or not."""
        return self._total

    def append(self, data: bytes) -> None:
        """Take received bytes."""
        with self._changed:
            self._total += len(data)
            if self._dropping:
                return
            self._pieces.append(data)
            self._held += len(data)
            self._changed.notify()

    def has_room(self) -> bool:
        """Whether to receive more now; after a no, ``wake`` is called once there is room."""
        with self._changed:
            self._refused = self._held >= HELD_BYTES_MAX
            return not self._refused

    def end(self) -> None:
        """Say that nothing more comes: the body is whole, or never will be."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes; fewer only at the end. Below zero: all."""
        size = size if size >= 0 else sys.maxsize
        piece = self._next(size)
        if len(piece) in (0, size):
            return piece
        pieces = [piece]
        size -= len(piece)
        while size and (piece := self._next(size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def read1(self, size: int) -> bytes:
        """Some of the next bytes, at most ``size``, as they came; none at the end."""
        return self._next(size)

    def getfile(self) -> "Flow":
        """What a thread reads the body from."""
        return self

    def close(self) -> None:
        """Say that nobody reads any more: what is here and what still comes is dropped."""
        with self._changed:
            self._dropping = True
            self._pieces.clear()
            wake = self._let(self._held)
        if wake:
            self._wake()

    def _next(self, most: int) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._ended or self._dropping)
            if not self._pieces:
                return b""
            piece = self._pieces.popleft()
            if len(piece) > most:
                self._pieces.appendleft(piece[most:])
                piece = piece[:most]
            wake = self._let(len(piece))
        if wake:
            self._wake()
        return piece

    def _let(self, size: int) -> bool:
        """Forget so many held bytes; whether the loop was refused room and should ask again."""
        self._held -= size
        wake = self._refused and self._held <= HELD_BYTES_MAX // 2
        self._refused = self._refused and not wake
        return wake
