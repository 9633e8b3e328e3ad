"""Uploads: bytes, hash, expiry, quota, and nothing left of what was refused."""

from datetime import timedelta
from hashlib import sha256

import pytest
from sqlalchemy import select

from gridline import limits
from gridline.clock import FrozenClock
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import LimitExceeded, Unavailable
from gridline.files import receiving
from gridline.files.errors import FileRefused
from gridline.files.tables import File
from gridline.profiles.profile import load
from gridline.storage.objects import Store
from tests.gridline.files.conftest import LINE, Upload
from tests.racing import together


def stored(account_id: str) -> tuple[int, int]:
    """Files and bytes that count against the quota."""
    with unit_of_work() as work:
        account = work.session.get_one(Account, account_id)
        return account.files_count, account.files_bytes


def test_an_upload_is_stored_hashed_and_counted(upload: Upload, store: Store, account_id: str) -> None:
    """The object holds the very bytes, the row their size and hash, the account its use."""
    file = upload(LINE * 3)
    assert store.read(file.object_key) == LINE * 3
    assert (file.bytes, file.sha256) == (len(LINE * 3), sha256(LINE * 3).hexdigest())
    assert stored(account_id) == (1, file.bytes)


def test_two_uploads_of_one_name_are_two_files(upload: Upload, store: Store) -> None:
    """A name is only a name: each upload keeps its own bytes under its own key."""
    first, second = upload(LINE, filename="../../a.jsonl"), upload(LINE * 2, filename="../../a.jsonl")
    assert first.id != second.id
    assert (store.read(first.object_key), store.read(second.object_key)) == (LINE, LINE * 2)
    assert store.list("") == sorted([first.object_key, second.object_key])


@pytest.mark.parametrize(
    ("asked", "kept"),
    [(None, timedelta(days=30)), (3600, timedelta(days=7)), (864_000, timedelta(days=10))],
)
def test_expiry_is_the_later_of_asked_and_promised(
    upload: Upload, clock: FrozenClock, asked: int | None, kept: timedelta
) -> None:
    """30 days by default, never under 7, else as asked."""
    assert upload(seconds=asked).expires_at == clock.now() + kept


def test_a_refused_upload_leaves_nothing(upload: Upload, store: Store, account_id: str) -> None:
    """A file found useless, at its first byte or at its end, leaves no object, no row and no used room."""
    for data in (b"", b"nonsense\n", LINE + b"\xff"):
        with pytest.raises(FileRefused):
            upload(data)
    assert store.list("") == []
    assert stored(account_id) == (0, 0)


def test_the_last_room_is_given_once(upload: Upload, store: Store, account_id: str) -> None:
    """At 499 files ten uploads race: one is kept, the others leave no object and learn limit and use."""
    with unit_of_work() as work:
        work.session.get_one(Account, account_id).files_count = limits.ACCOUNT_FILES_MAX - 1
    answers = together(10, upload)
    refused = [answer for answer in answers if isinstance(answer, LimitExceeded)]
    assert len(refused) == 9
    assert refused[0].limit == {"name": "stored_files", "limit": 500, "current": 500, "unit": "files"}
    assert stored(account_id) == (500, len(LINE))
    assert len(store.list("")) == 1


def test_stored_bytes_have_a_limit_to_the_byte(upload: Upload, account_id: str) -> None:
    """20 GB exactly can be stored; one byte more cannot."""
    with unit_of_work() as work:
        account = work.session.get_one(Account, account_id)
        account.files_bytes = limits.ACCOUNT_STORED_BYTES_MAX - len(LINE) + 1
    with pytest.raises(LimitExceeded) as caught:
        upload()
    assert caught.value.limit is not None
    assert caught.value.limit["name"] == "stored_bytes"
    with unit_of_work() as work:
        work.session.get_one(Account, account_id).files_bytes -= 1
    upload()
    with unit_of_work() as work, pytest.raises(LimitExceeded):
        receiving.check_room(work, account_id)


def test_a_lost_answer_of_the_commit_never_loses_the_object(
    account_id: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the database vanishes at the commit the row may stand, so the object stays."""

    def lost(*_arguments: object, **_named: object) -> File:
        raise Unavailable("The database is away.")

    monkeypatch.setattr(receiving, "add_row", lost)
    with receiving.receive(store, account_id, load("gridline")) as incoming:
        incoming.name("r.jsonl")
        incoming.write(LINE)
    with pytest.raises(Unavailable):
        receiving.keep(store, incoming, expires_after_seconds=None)
    assert store.read(incoming.object_key) == LINE


def test_an_upload_without_a_row_is_not_seen(account_id: str, store: Store) -> None:
    """Between object and row nothing is listed: a file is there as a whole or not at all."""
    with receiving.receive(store, account_id, load("gridline")) as incoming:
        incoming.name("r.jsonl")
        incoming.write(LINE)
        assert store.list("") == []
    with unit_of_work() as work:
        assert work.session.scalars(select(File)).all() == []
