"""Uploads in parts: opening, room for parts, and the ends without a file."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import Engine

from gridline import ids, limits
from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import InvalidRequest, LimitExceeded, NotFound, TooLarge, Unavailable
from gridline.files import parts, uploads
from gridline.files.errors import UploadNotPending
from gridline.files.requests import UploadRequest
from gridline.files.tables import Upload, UploadPart
from gridline.storage.objects import Store
from tests.gridline.files.conftest import LINE
from tests.gridline.files.in_parts import Sender
from tests.racing import together

TWO = LINE * 2


def ended(sender: Sender, clock: FrozenClock, how: str) -> str:
    """An upload with one part that is completed, cancelled or expired."""
    upload_id = sender.open(len(LINE))
    part_id = sender.part(upload_id, LINE)
    if how == "completed":
        sender.complete(upload_id, [part_id])
    elif how == "cancelled":
        sender.cancel(upload_id)
    else:
        clock.advance(seconds=limits.UPLOAD_OPEN_SECONDS)
    return upload_id


def test_an_upload_opens_pending_for_an_hour(sender: Sender, clock: FrozenClock) -> None:
    """What was asked for is kept, and the upload expires an hour later."""
    upload = sender.upload(sender.open(100, seconds=864_000))
    assert (upload.status, upload.bytes, upload.expires_after_seconds) == ("pending", 100, 864_000)
    assert upload.expires_at - upload.created_at == timedelta(hours=1)
    assert sender.used() == (0, 0)


def test_an_account_has_twenty_pending_uploads(sender: Sender, clock: FrozenClock) -> None:
    """The twenty-first is refused with limit and use; one that is completed, cancelled or expired makes room."""
    open_ones = [sender.open(len(LINE)) for _ in range(20)]
    with pytest.raises(LimitExceeded) as caught:
        sender.open(1)
    assert caught.value.limit == {"name": "uploads_pending", "limit": 20, "current": 20, "unit": "uploads"}
    sender.cancel(open_ones[0])
    sender.open(1)
    sender.complete(open_ones[1], [sender.part(open_ones[1], LINE)])
    sender.open(1)
    with pytest.raises(LimitExceeded):
        sender.open(1)
    clock.advance(hours=1)
    sender.open(1)


def test_the_last_pending_upload_is_opened_once(sender: Sender) -> None:
    """At nineteen pending uploads ten creates race, and one of them is accepted."""
    for _ in range(19):
        sender.open(1)
    answers = together(10, lambda: sender.open(1))
    assert sorted(type(answer).__name__ for answer in answers) == ["LimitExceeded"] * 9 + ["str"]


def test_a_create_waits_for_one_that_is_not_committed(sender: Sender, owner: Engine) -> None:
    """While the twentieth upload is being opened another create waits, and then counts it."""
    for _ in range(19):
        sender.open(1)
    wanted = UploadRequest("r.jsonl", "batch", 1, "application/jsonl")
    with ThreadPoolExecutor(1) as pool:
        with unit_of_work() as work:
            uploads.create(work, account_id=sender.account_id, request=wanted)
            late = pool.submit(sender.open, 1)
            end = time.monotonic() + 20
            while not (late.done() or blocked(owner)):
                assert time.monotonic() < end
        with pytest.raises(LimitExceeded):
            late.result()


def blocked(owner: Engine) -> bool:
    """Whether a transaction of this database waits for another's lock."""
    with owner.connect() as connection:
        return bool(
            connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE NOT granted").scalar_one()
        )


def test_a_full_account_opens_no_upload(sender: Sender) -> None:
    """An account without room for a file learns it before it sends a byte."""
    with unit_of_work() as work:
        work.session.get_one(Account, sender.account_id).files_count = limits.ACCOUNT_FILES_MAX
    with pytest.raises(LimitExceeded) as caught:
        sender.open(1)
    assert caught.value.limit == {"name": "stored_files", "limit": 500, "current": 500, "unit": "files"}


def test_a_part_may_have_its_cap_to_the_byte(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cap is inclusive; one byte more is refused while it streams, and nothing of it is left."""
    monkeypatch.setattr(limits, "UPLOAD_PART_BYTES_MAX", 30)
    upload_id = sender.open(100)
    sender.part(upload_id, b"x" * 30)
    with pytest.raises(TooLarge) as caught:
        sender.part(upload_id, b"x" * 31)
    assert (caught.value.code, caught.value.param) == ("part_too_large", "data")
    assert caught.value.limit == {"name": "part_bytes", "limit": 30, "unit": "bytes"}
    assert len(sender.objects("uploads")) == 1


def test_parts_may_have_twice_the_declared_bytes_together(sender: Sender) -> None:
    """Every part may be sent twice; a byte beyond is refused with limit and use, and nothing of it is left."""
    upload_id = sender.open(50)
    for size in (50, 49):
        sender.part(upload_id, b"x" * size)
    with pytest.raises(TooLarge) as caught:
        sender.part(upload_id, b"xx")
    assert caught.value.code == "upload_too_large"
    assert caught.value.limit == {"name": "upload_bytes", "limit": 100, "current": 99, "unit": "bytes"}
    sender.part(upload_id, b"x")
    assert len(sender.objects("uploads")) == 3


def test_parts_side_by_side_share_their_room(sender: Sender) -> None:
    """Of ten parts that all began while there was room for two, two are kept and the others leave nothing."""
    upload_id = sender.open(10)
    answers = together(10, lambda: sender.part(upload_id, b"x" * 10))
    assert sorted(type(answer).__name__ for answer in answers) == ["TooLarge"] * 8 + ["str"] * 2
    assert len(sender.objects("uploads")) == 2


def test_an_upload_has_a_thousand_parts(sender: Sender) -> None:
    """The part after the last is refused with limit and use, before a byte of it is read."""
    upload_id = sender.open(10_000)
    with unit_of_work() as work:
        for _ in range(1000):
            row = UploadPart(
                id=ids.new("upload_part"), upload_id=upload_id, account_id=sender.account_id, bytes=1,
                object_key="x", created_at=work.now,
            )  # fmt: skip
            work.session.add(row)
    with pytest.raises(TooLarge) as caught, unit_of_work() as work:
        parts.room(work, account_id=sender.account_id, upload_id=upload_id)
    assert caught.value.code == "too_many_parts"
    assert caught.value.limit == {"name": "upload_parts", "limit": 1000, "current": 1000, "unit": "parts"}


def test_an_empty_part_is_refused(sender: Sender) -> None:
    """A part has a byte at least; an empty one leaves nothing."""
    with pytest.raises(InvalidRequest) as caught:
        sender.part(sender.open(10), b"")
    assert (caught.value.code, caught.value.param) == ("empty_part", "data")
    assert sender.objects("uploads") == []


@pytest.mark.parametrize("how", ["completed", "cancelled", "expired"])
def test_an_ended_upload_takes_no_part(sender: Sender, clock: FrozenClock, how: str) -> None:
    """A part for an upload that has ended is refused with its status; time alone ends one too."""
    upload_id = ended(sender, clock, how)
    with pytest.raises(UploadNotPending, match=how) as caught:
        sender.part(upload_id, LINE)
    assert (caught.value.status, caught.value.code) == (400, "upload_not_pending")


@pytest.mark.parametrize("how", ["completed", "expired"])
def test_what_is_completed_or_expired_is_not_cancelled(sender: Sender, clock: FrozenClock, how: str) -> None:
    """Cancelling too late says so, and a file that was made stays."""
    upload_id = ended(sender, clock, how)
    with pytest.raises(UploadNotPending, match=how):
        sender.cancel(upload_id)
    assert len(sender.objects("files")) == len(sender.files()) == (how == "completed")


@pytest.mark.parametrize("how", ["cancelled", "expired"])
def test_what_is_cancelled_or_expired_becomes_no_file(sender: Sender, clock: FrozenClock, how: str) -> None:
    """Completing too late says so."""
    upload_id = sender.open(len(LINE))
    part_id = sender.part(upload_id, LINE)
    if how == "cancelled":
        sender.cancel(upload_id)
    clock.advance(seconds=limits.UPLOAD_OPEN_SECONDS)
    with pytest.raises(UploadNotPending, match=how):
        sender.complete(upload_id, [part_id])
    assert sender.objects("files") == []


def test_an_upload_lives_to_its_last_second(sender: Sender, clock: FrozenClock) -> None:
    """A second before it expires an upload takes a part and is completed."""
    upload_id = sender.open(len(LINE))
    clock.advance(seconds=limits.UPLOAD_OPEN_SECONDS - 1)
    assert sender.complete(upload_id, [sender.part(upload_id, LINE)]).file is not None


def test_cancelling_drops_the_parts_and_may_be_repeated(sender: Sender) -> None:
    """Nothing of a cancelled upload is in the store; cancelling it again, or at once, changes nothing."""
    upload_id = sender.open(len(TWO))
    sender.part(upload_id, LINE)
    sender.part(upload_id, LINE)
    answers = together(4, lambda: sender.cancel(upload_id))
    assert {answer.status for answer in answers if isinstance(answer, Upload)} == {"cancelled"}
    assert [answer for answer in answers if isinstance(answer, Exception)] == []
    assert sender.cancel(upload_id).status == "cancelled"
    assert sender.objects("uploads") == []


def test_a_part_that_arrives_after_the_end_leaves_nothing(sender: Sender, store: Store) -> None:
    """An upload that is cancelled while a part streams in keeps no byte of it."""
    upload_id = sender.open(len(LINE))
    with unit_of_work() as work:
        room = parts.room(work, account_id=sender.account_id, upload_id=upload_id)
    with parts.receive(store, room) as incoming:
        incoming.write(LINE)
        sender.cancel(upload_id)
    with pytest.raises(UploadNotPending):
        parts.keep(store, incoming)
    assert sender.objects("uploads") == []


def test_a_lost_answer_of_the_commit_never_loses_the_part(
    sender: Sender, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the database vanishes at the commit the row may stand, so the part's object stays."""
    upload_id = sender.open(len(LINE))
    with unit_of_work() as work:
        room = parts.room(work, account_id=sender.account_id, upload_id=upload_id)
    with parts.receive(store, room) as incoming:
        incoming.write(LINE)

    def lost(*_arguments: object, **_named: object) -> None:
        raise Unavailable("The database is away.")

    monkeypatch.setattr(uploads, "get", lost)
    with pytest.raises(Unavailable):
        parts.keep(store, incoming)
    assert sender.objects("uploads") == [incoming.object_key]


def test_a_store_that_is_away_does_not_undo_a_cancel(
    sender: Sender, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be deleted at once is left to the sweep; the customer's call is answered."""
    upload_id = sender.open(len(LINE))
    sender.part(upload_id, LINE)

    def away(_prefix: str) -> int:
        raise Unavailable("The store is away.")

    monkeypatch.setattr(store, "delete_prefix", away)
    assert sender.cancel(upload_id).status == "cancelled"
    assert len(sender.objects("uploads")) == 1


def test_foreign_missing_and_odd_ids_are_the_same(sender: Sender) -> None:
    """Another account's upload, a random id and text that is no id get the same answer from every call."""
    mine = sender.open(len(LINE))
    part_id = sender.part(mine, LINE)
    with unit_of_work() as work:
        stranger = Sender(accounts.open_account(work, "stranger").id, sender.store)
    calls: list[Callable[[str], object]] = [
        lambda one: stranger.part(one, LINE),
        lambda one: stranger.complete(one, [part_id]),
        stranger.cancel,
    ]
    for one in (mine, ids.new("upload"), "upload_\0", "../../etc/passwd", ""):
        for call in calls:
            with pytest.raises(NotFound) as caught:
                call(one)
            assert (caught.value.message, caught.value.param) == (
                f"No such Upload object: {one}",
                "upload_id",
            )
    assert sender.upload(mine).status == "pending"
