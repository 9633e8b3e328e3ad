"""Where a process can die: before and after every commit and every write of the store. Counts them, and dies there.

Production code has no hooks for this: the session's own events and the folder store's methods are wrapped, in a
child process that lives for one step.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import event, text
from sqlalchemy.orm import Session

from gridline.storage.folder import FileWriter, Folder

COMMIT = "commit"


class Points:
    """What this process reached, as (what, how many times by then), and the one that it dies at."""

    def __init__(self, kill: tuple[str, str, int] | None) -> None:
        self.reached: list[tuple[str, int]] = []
        self._kill = kill
        self._counts: Counter[str] = Counter()

    def before(self, label: str) -> int:
        """Something lasting is about to happen; which time that is."""
        self._counts[label] += 1
        number = self._counts[label]
        self.reached.append((label, number))
        self._die_at("before", label, number)
        return number

    def after(self, label: str, number: int) -> None:
        """It has happened."""
        self._die_at("after", label, number)

    def _die_at(self, when: str, label: str, number: int) -> None:
        if self._kill == (when, label, number):
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()

    def watch(self) -> None:
        """Wrap commits and writes of this process, for the rest of its life."""
        self._watch_commits()
        for name in ("put_once", "replace", "delete"):
            setattr(Folder, name, self._counted(name, getattr(Folder, name)))
        Folder.writer = self._counted_writer(Folder.writer)  # type: ignore[method-assign,assignment]

    def _watch_commits(self) -> None:
        open_commits: dict[int, int] = {}

        def before(session: Session) -> None:
            if not session.in_nested_transaction() and _writes(session):
                open_commits[id(session)] = self.before(COMMIT)

        def after(session: Session) -> None:
            if not session.in_nested_transaction() and id(session) in open_commits:
                self.after(COMMIT, open_commits.pop(id(session)))

        event.listen(Session, "before_commit", before)
        event.listen(Session, "after_commit", after)

    def _counted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(folder: Folder, key: str, *data: bytes) -> Any:
            number = self.before(f"{name} {_kind(key)}")
            answer = method(folder, key, *data)
            self.after(f"{name} {_kind(key)}", number)
            return answer

        return counted

    def _counted_writer(
        self, method: Callable[..., AbstractContextManager[FileWriter]]
    ) -> Callable[..., AbstractContextManager[FileWriter]]:
        @contextmanager
        def counted(folder: Folder, key: str) -> Iterator[FileWriter]:
            with method(folder, key) as writer:
                yield writer
                # The bytes are written, and nothing is visible yet.
                number = self.before(f"write {_kind(key)}")
            self.after(f"write {_kind(key)}", number)

        return counted


def _writes(session: Session) -> bool:
    """Whether its transaction has anything to commit, or holds a lock that others wait for."""
    session.flush()
    return session.scalar(text("SELECT pg_current_xact_id_if_assigned()::text")) is not None


def _kind(key: str) -> str:
    """An object's name without its id, so that it is called the same in every run."""
    name = key.rpartition("/")[2]
    return next((kind for kind in ("file", "part") if name.startswith((f"{kind}-", f"{kind}_"))), name)
