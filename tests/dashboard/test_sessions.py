"""Sessions: who is signed in, and for how long."""

from collections.abc import Iterator

import pytest

from dashboard import sessions
from dashboard.sessions import Sessions
from gridline.client import Account, Client

ACCOUNT = Account("acct_a", "A", 0, 0, {})


class Watch:
    """A monotonic clock that tests move."""

    seconds = 0.0

    def __call__(self) -> float:
        """The seconds now."""
        return self.seconds


@pytest.fixture
def watch() -> Watch:
    """A clock at zero."""
    return Watch()


@pytest.fixture
def kept(watch: Watch) -> Iterator[Sessions]:
    """No sessions yet; those made are closed in the end."""
    found = Sessions(watch)
    yield found
    for session in found._found.values():
        session.client.close()


def start(kept: Sessions) -> str:
    """Sign somebody in."""
    return kept.start(Client("http://api", "gl-secret"), ACCOUNT)


def test_ids_are_long_random_and_stored_only_as_hashes(kept: Sessions) -> None:
    """No two alike, and a dump of the store lets nobody in."""
    first, second = start(kept), start(kept)
    assert first != second
    assert len(first) >= 43
    assert first not in repr(kept._found)
    assert kept.find(next(iter(kept._found))) is None


@pytest.mark.parametrize("key", ["", "x", "../x"])
def test_unknown_ids_are_nobody(kept: Sessions, key: str) -> None:
    """An id that was never given finds nothing, and signing it out is fine."""
    assert kept.find(key) is None
    kept.end(key)


def test_an_idle_session_ends(kept: Sessions, watch: Watch) -> None:
    """Use keeps a session; hours without any end it for good."""
    key = start(kept)
    watch.seconds = sessions.IDLE_SECONDS_MAX
    assert kept.find(key) is not None
    watch.seconds += sessions.IDLE_SECONDS_MAX + 1
    assert kept.find(key) is None
    watch.seconds -= sessions.IDLE_SECONDS_MAX
    assert kept.find(key) is None


def test_an_old_session_ends_however_much_it_is_used(kept: Sessions, watch: Watch) -> None:
    """A page left open for ever does not keep a session for ever."""
    key = start(kept)
    while watch.seconds <= sessions.AGE_SECONDS_MAX:
        assert kept.find(key) is not None
        watch.seconds += sessions.IDLE_SECONDS_MAX / 2
    assert kept.find(key) is None


def test_the_store_is_bounded(kept: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is full the oldest sign-in gives way."""
    monkeypatch.setattr(sessions, "SESSIONS_MAX", 2)
    keys = [start(kept) for _ in range(3)]
    assert [kept.find(key) is not None for key in keys] == [False, True, True]
