"""Completing an upload: the file that its parts make, every refusal, and several completions at once."""

import tracemalloc
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from hashlib import md5, sha256

import pytest

from gridline import ids, limits
from gridline.clock import FrozenClock
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import GridlineError, InvariantBroken, LimitExceeded, Unavailable
from gridline.files import keeping, receiving
from gridline.files.assembling import Completed
from gridline.files.errors import UploadNotPending
from gridline.files.tables import File, Upload
from gridline.storage.objects import Store
from tests.gridline.files.conftest import LINE
from tests.gridline.files.in_parts import Sender
from tests.racing import together

DATA = b'{"custom_id":"first"}\n{"custom_id":"second"}\n{"custom_id":"third"}\n'


def sent(sender: Sender, data: bytes = DATA, *, declared: int | None = None) -> tuple[str, list[str]]:
    """An upload with its data in parts of ten bytes, sent last part first; its id and the parts' ids in order."""
    upload_id = sender.open(declared or len(data))
    pieces = [data[at : at + 10] for at in range(0, len(data), 10)]
    return upload_id, [sender.part(upload_id, piece) for piece in reversed(pieces)][::-1]


def pending_still(sender: Sender, upload_id: str, part_ids: list[str]) -> bool:
    """Whether a refusal left the upload and its parts as they were, no file and no used room."""
    return (
        sender.upload(upload_id).status == "pending"
        and len(sender.objects("uploads")) == len(part_ids)
        and sender.objects("files") == []
        and sender.files() == []
        and sender.used() == (0, 0)
    )


def test_parts_become_one_file_in_the_asked_order(sender: Sender, store: Store, clock: FrozenClock) -> None:
    """Whatever order they were sent in; the file is like any other, and the parts are gone."""
    upload_id, part_ids = sent(sender)
    done = sender.complete(upload_id, part_ids, md5=md5(DATA).hexdigest())
    (file,) = sender.files()
    assert (done.upload.status, done.fresh) == ("completed", True)
    assert done.file is not None
    assert done.file.id == file.id == sender.upload(upload_id).file_id
    assert store.read(file.object_key) == DATA
    assert (file.bytes, file.sha256) == (len(DATA), sha256(DATA).hexdigest())
    assert (file.filename, file.purpose) == ("r.jsonl", "batch")
    assert file.expires_at == clock.now() + timedelta(days=30)
    assert sender.used() == (1, len(DATA))
    assert sender.objects("uploads") == []


def test_the_asked_expiry_counts_from_the_file(sender: Sender, clock: FrozenClock) -> None:
    """An expiry that was asked for at the create runs from the completion."""
    upload_id = sender.open(len(LINE), seconds=864_000)
    part_id = sender.part(upload_id, LINE)
    clock.advance(minutes=30)
    file = sender.complete(upload_id, [part_id]).file
    assert file is not None
    assert file.expires_at == clock.now() + timedelta(days=10)


def test_a_part_that_was_sent_again_may_be_left_out(sender: Sender, store: Store) -> None:
    """A retried part is a second one; the completion names one of the two."""
    upload_id = sender.open(len(DATA))
    first, again, rest = (sender.part(upload_id, one) for one in (DATA[:9], DATA[:9], DATA[9:]))
    file = sender.complete(upload_id, [again, rest]).file
    assert file is not None
    assert store.read(file.object_key) == DATA
    assert sender.objects("uploads") == []
    assert first != again


def test_a_part_that_is_not_the_uploads_is_named(sender: Sender) -> None:
    """Random ids, another upload's part and text that is no id get the same answer, with the id in it."""
    upload_id, part_ids = sent(sender)
    other = sender.part(sender.open(50), LINE)
    for one in (ids.new("upload_part"), other, "part_\0", "x" * 1000, ""):
        with pytest.raises(GridlineError) as caught:
            sender.complete(upload_id, [*part_ids, one])
        assert (caught.value.status, caught.value.code, caught.value.param) == (
            400, "invalid_value", "part_ids",
        )  # fmt: skip
        assert f"no part '{one[:64]}" in caught.value.message
    assert sender.upload(upload_id).status == "pending"


@pytest.mark.parametrize("declared", [len(DATA) - 1, len(DATA) + 1])
def test_parts_must_have_the_declared_bytes(sender: Sender, declared: int) -> None:
    """A sum that is a byte off is refused with both numbers, and the upload stays pending."""
    upload_id, part_ids = sent(sender, declared=declared)
    with pytest.raises(GridlineError, match=rf"{len(DATA)} bytes together.* {declared} bytes") as caught:
        sender.complete(upload_id, part_ids)
    assert (caught.value.status, caught.value.code) == (400, "upload_bytes_mismatch")
    assert pending_still(sender, upload_id, part_ids)


def test_the_md5_must_match(sender: Sender) -> None:
    """Another MD5, as of parts in another order, is refused and heals with the right order."""
    upload_id, part_ids = sent(sender, LINE * 3)
    swapped = [part_ids[2], part_ids[1], part_ids[0], *part_ids[3:]]
    with pytest.raises(GridlineError) as caught:
        sender.complete(upload_id, part_ids, md5="0" * 32)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "md5_mismatch", "md5")
    with pytest.raises(GridlineError):
        sender.complete(upload_id, swapped, md5=md5(LINE * 3).hexdigest())
    assert pending_still(sender, upload_id, part_ids)
    assert sender.complete(upload_id, part_ids, md5=md5(LINE * 3).hexdigest()).fresh


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"not JSON at all\n", 400, "invalid_json_line"),
        (b"\x1f\x8b\x08 looks like gzip", 400, "invalid_file_format"),
        (LINE + b"\xff\xfe\xfd", 400, "invalid_encoding"),
        (b"{}\n" * 50_001, 413, "too_many_requests_in_file"),
    ],
)
def test_content_is_judged_as_any_other_files(sender: Sender, data: bytes, status: int, code: str) -> None:
    """What POST /files refuses is refused here with the same code; the upload stays pending."""
    upload_id = sender.open(len(data))
    part_ids = [sender.part(upload_id, one) for one in (data[:2], data[2:])]
    with pytest.raises(GridlineError) as caught:
        sender.complete(upload_id, part_ids)
    assert (caught.value.status, caught.value.code) == (status, code)
    assert pending_still(sender, upload_id, part_ids)


@pytest.mark.parametrize("moment", ["before", "meanwhile"])
def test_an_account_without_room_gets_no_file(
    sender: Sender, store: Store, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quota that is used up is the usual refusal, before a byte is read or after; the upload stays pending."""
    upload_id, part_ids = sent(sender)
    with unit_of_work() as work:
        work.session.get_one(Account, sender.account_id).files_count = limits.ACCOUNT_FILES_MAX
    with monkeypatch.context() as patch:
        if moment == "meanwhile":
            patch.setattr(receiving, "check_room", lambda *_: None)
        else:
            patch.delattr(store, "_backend")
        with pytest.raises(LimitExceeded):
            sender.complete(upload_id, part_ids)
    assert sender.upload(upload_id).status == "pending"
    assert store.list("files/") == []


def test_the_same_completion_again_is_the_same_file(sender: Sender) -> None:
    """Repeating a completion answers its file; with other parts, or another order, it is refused."""
    upload_id, part_ids = sent(sender)
    first, again = (sender.complete(upload_id, part_ids) for _ in range(2))
    assert first.file is not None
    assert again.file is not None
    assert (again.file.id, again.fresh) == (first.file.id, False)
    for other in (part_ids[::-1], part_ids[1:], [ids.new("upload_part")]):
        with pytest.raises(UploadNotPending, match="other parts"):
            sender.complete(upload_id, other)
    assert len(sender.files()) == 1


def test_a_completed_upload_outlives_its_hour_and_its_file(sender: Sender, clock: FrozenClock) -> None:
    """It is completed for ever; once its file is deleted it shows none."""
    upload_id, part_ids = sent(sender)
    file = sender.complete(upload_id, part_ids).file
    clock.advance(days=2)
    again = sender.complete(upload_id, part_ids)
    assert file is not None
    assert again.file is not None
    assert again.file.id == file.id
    with unit_of_work() as work:
        keeping.delete(work, account_id=sender.account_id, file_id=file.id, actor="token:t")
    gone = sender.complete(upload_id, part_ids)
    assert (gone.upload.status, gone.file) == ("completed", None)


@pytest.mark.thorough
def test_completions_at_once_make_one_file(sender: Sender) -> None:
    """Of eight completions at the same moment one makes the file, all answer it, and nothing else is stored."""
    for turn in range(1, 4):
        upload_id, part_ids = sent(sender)
        answers = together(8, partial(sender.complete, upload_id, part_ids))
        done = [answer for answer in answers if isinstance(answer, Completed)]
        assert len(done) == 8, answers
        assert len({one.file.id for one in done if one.file}) == sum(one.fresh for one in done) == 1
        assert len(sender.files()) == len(sender.objects("files")) == turn
        assert sender.used() == (turn, len(DATA) * turn)
    assert sender.objects("uploads") == []


@pytest.mark.thorough
def test_complete_and_cancel_at_once_never_both_win(sender: Sender) -> None:
    """Either the file is there and the cancel was refused, or no file is, and the completion was refused."""
    for _ in range(6):
        upload_id, part_ids = sent(sender)
        answers = race(sender, upload_id, part_ids)
        assert {type(one) for one in answers} in ({Completed, UploadNotPending}, {Upload, UploadNotPending})
        upload = sender.upload(upload_id)
        assert (upload.file_id is not None) == (upload.status == "completed")
        assert len(sender.objects("files")) == len(sender.files())
        assert sender.objects("uploads") == []


def race(sender: Sender, upload_id: str, part_ids: list[str]) -> list[object]:
    """A completion and a cancel that start at the same moment."""
    calls: list[Callable[[], object]] = [
        lambda: sender.complete(upload_id, part_ids),
        lambda: sender.cancel(upload_id),
    ]
    return list(together(2, lambda: calls.pop()()))  # noqa: PLW0108 - each call takes one of the two


def interrupted(store: Store, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have ``act`` done once, just before the second part is read."""
    real, reads = store.stream, []

    def stream(key: str) -> Iterator[bytes]:
        reads.append(key)
        if len(reads) == 2:
            act()
        return real(key)

    monkeypatch.setattr(store, "stream", stream)


def test_a_cancel_in_the_middle_of_an_assembly_wins(
    sender: Sender, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts that vanish while they are read are an ended upload to the customer, not a missing object."""
    upload_id, part_ids = sent(sender)
    interrupted(store, monkeypatch, lambda: sender.cancel(upload_id))
    with pytest.raises(UploadNotPending, match="cancelled"):
        sender.complete(upload_id, part_ids)
    assert sender.objects("files") == []
    assert sender.objects("uploads") == []


def test_a_completion_in_the_middle_of_another_is_answered_by_both(
    sender: Sender, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slower of two equal completions finds the parts gone and answers the file that the other made."""
    upload_id, part_ids = sent(sender)
    faster: list[Completed] = []
    interrupted(store, monkeypatch, lambda: faster.append(sender.complete(upload_id, part_ids)))
    slower = sender.complete(upload_id, part_ids)
    assert slower.file is not None
    assert faster[0].file is not None
    assert (slower.file.id, slower.fresh) == (faster[0].file.id, False)
    assert len(sender.objects("files")) == 1


def test_a_lost_object_is_our_fault(sender: Sender, store: Store) -> None:
    """A part of a pending upload that is missing, or shorter than its row says, is never made a file of."""
    upload_id, part_ids = sent(sender)
    key = next(one for one in sender.objects("uploads") if one.endswith(part_ids[-1]))
    store.replace(key, b"}")
    with pytest.raises(InvariantBroken):
        sender.complete(upload_id, part_ids)
    store.delete(key)
    with pytest.raises(InvariantBroken):
        sender.complete(upload_id, part_ids)
    assert sender.files() == []
    assert sender.objects("files") == []


def test_a_crash_before_the_end_shows_nothing(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the assembled object and the row nothing can be seen, and the completion can be done again."""
    upload_id, part_ids = sent(sender)

    def lost(*_arguments: object, **_named: object) -> File:
        raise Unavailable("The database is away.")

    with monkeypatch.context() as patch:
        patch.setattr(receiving, "add_row", lost)
        with pytest.raises(Unavailable):
            sender.complete(upload_id, part_ids)
    assert sender.files() == []
    assert sender.upload(upload_id).status == "pending"
    assert len(sender.objects("uploads")) == len(part_ids)
    # The answer of a commit may be lost after a yes, so the object stays; nobody sees it.
    assert len(sender.objects("files")) == 1
    assert sender.complete(upload_id, part_ids).fresh


@pytest.mark.thorough
def test_a_large_file_is_assembled_in_flat_memory(sender: Sender) -> None:
    """Twenty-four megabytes in three parts take a few chunks of memory, not the file's size."""
    piece = (b'{"custom_id":"' + b"x" * 1000 + b'"}\n') * 8_000
    upload_id = sender.open(3 * len(piece))
    part_ids = [sender.part(upload_id, piece) for _ in range(3)]
    tracemalloc.start()
    try:
        assert sender.complete(upload_id, part_ids).fresh
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * 1024 * 1024
