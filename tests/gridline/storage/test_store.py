"""Both kinds of store keep the same promises."""

import os
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from gridline.clock import SystemClock
from gridline.errors import SettingInvalid
from gridline.storage import KeyRefused, ObjectMissing, Store, StoreUnavailable
from gridline.storage.folder import INCOMING


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "folder":
        return Store((tmp_path / "a folder").as_uri())
    import httpx

    endpoint = request.getfixturevalue("s3")
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    httpx.post(f"{endpoint}/moto-api/reset").raise_for_status()
    httpx.put(f"{endpoint}/rows").raise_for_status()
    return Store("s3://rows/some/prefix")


def test_first_put_wins(store: Store) -> None:
    """A create-once object keeps its first bytes, and each caller learns whether it made it."""
    assert store.put_once("a/b", b"first")
    assert not store.put_once("a/b", b"second")
    assert store.read("a/b") == b"first"


def test_what_killed_writers_left_can_be_dropped(store: Store) -> None:
    """Whatever was left of objects that never became visible, those that did stay."""
    store.put_once("a/b", b"whole")
    if "file:" in store.url:
        left = Path(store._backend.root) / INCOMING / "1-dead"  # type: ignore[attr-defined]
        left.write_bytes(b"half")
    soon = SystemClock().now() + timedelta(minutes=1)
    assert store.drop_unfinished(soon - timedelta(hours=1)) == 0
    assert store.drop_unfinished(soon) == ("file:" in store.url)
    assert store.drop_unfinished(soon) == 0
    assert store.read("a/b") == b"whole"


def test_one_maker_of_many(store: Store) -> None:
    """Of callers that create the same object at once exactly one is told that it made it."""
    barrier = threading.Barrier(8)
    made: list[int] = []

    def create(number: int) -> None:
        barrier.wait()
        if store.put_once("race", str(number).encode()):
            made.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.read("race") == str(made[0]).encode()
    assert len(made) == 1


def test_replace(store: Store) -> None:
    """A progress object shows the last bytes written."""
    store.replace("p/progress.json", b"1")
    store.replace("p/progress.json", b"22")
    assert store.read("p/progress.json") == b"22"
    assert store.size("p/progress.json") == 2


def test_missing(store: Store) -> None:
    """A missing object is told apart from every other fault, and deleting it is fine."""
    store.put_once("a/b", b"")
    for key in ("none", "a", "a/c", "a/b/c"):
        with pytest.raises(ObjectMissing):
            store.read(key)
        with pytest.raises(ObjectMissing):
            store.stream(key)
        assert store.read_or_none(key) is None
        assert store.size(key) is None
    store.delete("none")
    store.delete("a/b/c")
    assert store.read("a/b") == b""


RANGES = [
    (0, None, b"0123456789"),
    (3, 7, b"3456"),
    (8, 99, b"89"),
    (10, None, b""),
    (50, 60, b""),
    (7, 3, b""),
    (9, 10, b"9"),
]


def test_ranges(store: Store) -> None:
    """A stream gives exactly the bytes of its range, cut at the object's end."""
    store.put_once("k", b"0123456789")
    for start, end, expected in RANGES:
        assert b"".join(store.stream("k", start=start, end=end, chunk_bytes=4)) == expected


def test_an_object_in_a_folder_is_an_open_file(tmp_path: Path) -> None:
    """It keeps its bytes when it is deleted, a missing one is said to be missing, and a bucket has no files."""
    store = Store(tmp_path.as_uri())
    store.put_once("k", b"0123456789")
    opened = store.open_file("k")
    assert opened is not None
    with opened:
        store.delete("k")
        assert opened.read() == b"0123456789"
    with pytest.raises(ObjectMissing):
        store.open_file("k")
    assert Store("s3://bucket/prefix").open_file("k") is None


def test_writer(store: Store) -> None:
    """A written object is visible as a whole at the end of its block and not before."""
    with store.writer("big/one") as sink:
        for _ in range(3):
            sink.write(b"x" * 100_000)
        assert store.size("big/one") is None
    assert store.size("big/one") == 300_000


def test_broken_writer_leaves_nothing(store: Store) -> None:
    """An exception inside a writer's block leaves no object and keeps the one that stood."""
    store.put_once("old", b"kept")
    for key in ("old", "new"):
        with pytest.raises(ZeroDivisionError):
            _write(store, key, then=lambda: 1 // 0)
    assert store.read("old") == b"kept"
    assert store.list("") == ["old"]


def test_list_and_delete_prefix(store: Store) -> None:
    """Listings are sorted, may end within a name, and deleting a prefix leaves its neighbours."""
    for key in ("p/3", "p/1", "p/10/x", "p/2", "q/1", "p2"):
        store.put_once(key, b".")
    assert store.list("p/") == ["p/1", "p/10/x", "p/2", "p/3"]
    assert store.list("p/1") == ["p/1", "p/10/x"]
    assert store.list("p") == ["p/1", "p/10/x", "p/2", "p/3", "p2"]
    assert store.list("none/") == []
    assert store.delete_prefix("p/") == 4
    assert store.list("") == ["p2", "q/1"]
    assert store.delete_prefix("p/") == 0


def test_listings_say_when(store: Store) -> None:
    """A listing with instants holds the keys of the plain one, sorted, each aware and in the order of writing."""
    before = SystemClock().now() - timedelta(seconds=2)
    for key in ("p/2", "p/1", "q/1"):
        store.put_once(key, b".")
    found = store.modified("p/")
    assert list(found) == store.list("p/") == ["p/1", "p/2"]
    assert before <= found["p/2"] <= found["p/1"] <= SystemClock().now() + timedelta(seconds=2)
    assert store.modified("none/") == {}


@pytest.mark.parametrize("key", ["", "/etc/passwd", "a/../b", "a//b", "./a", ".incoming/x", "a\0", "a/", "ä"])
def test_keys_stay_inside(tmp_path: Path, key: str) -> None:
    """A key can name nothing outside its store and nothing that is not an object."""
    store = Store(tmp_path.as_uri())
    for call in (store.read, store.delete, store.size, store.stream, store.open_file, store.writer):
        with pytest.raises(KeyRefused):
            call(key)
    with pytest.raises(KeyRefused):
        store.put_once(key, b"")


@pytest.mark.parametrize("url", ["", "http://x/y", "file:relative", "s3://", "/plain"])
def test_urls(url: str) -> None:
    """A store's address that cannot be used is refused when it is opened."""
    with pytest.raises(SettingInvalid):
        Store(url)


def test_prefix_must_not_be_empty(tmp_path: Path) -> None:
    """Nothing deletes the whole store by mistake."""
    with pytest.raises(KeyRefused):
        Store(tmp_path.as_uri()).delete_prefix("")


def test_bytes_reach_the_disk_before_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes are on the disk before an object is visible, and its folder's entries before the call returns."""
    store = Store(tmp_path.as_uri())
    target = tmp_path / "a" / "b" / "c"
    seen: list[tuple[str, bool]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append(("part" if INCOMING in path.parts else str(path.relative_to(tmp_path)), target.exists()))
        real(descriptor)

    monkeypatch.setattr("gridline.storage.folder.os.fsync", fsync)
    store.put_once("a/b/c", b"x")
    assert seen == [("part", False), (".", False), ("a", False), ("a/b", True)]
    seen.clear()
    store.replace("a/b/d", b"x")
    _write(store, "a/b/e")
    assert [name for name, _ in seen] == ["part", "a/b"] * 2


def _write(store: Store, key: str, then: Callable[[], object] = lambda: None) -> None:
    with store.writer(key) as sink:
        sink.write(b"x")
        then()


def test_full_disk_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails on the disk is never reported as done and leaves no object."""
    store = Store(tmp_path.as_uri())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gridline.storage.folder.os.fsync", full)
    with pytest.raises(StoreUnavailable, match="No space left"):
        store.put_once("k", b"x")
    with pytest.raises(StoreUnavailable, match="No space left"):
        _write(store, "k")
    assert store.list("") == []
    assert list((tmp_path / INCOMING).iterdir()) == []


def test_deleted_while_read(tmp_path: Path) -> None:
    """A download that began goes on when its object is deleted."""
    store = Store(tmp_path.as_uri())
    store.put_once("k", b"abcdef")
    chunks = store.stream("k", chunk_bytes=2)
    assert next(chunks) == b"ab"
    store.delete("k")
    assert b"".join(chunks) == b"cdef"
