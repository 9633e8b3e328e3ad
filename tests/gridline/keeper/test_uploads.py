"""The sweep of uploads whose time is over."""

from collections.abc import Callable

import pytest
from sqlalchemy import Engine, func, select

from gridline import limits
from gridline.clock import FrozenClock
from gridline.customers import accounts
from gridline.db.work import unit_of_work
from gridline.errors import Unavailable
from gridline.files import parts
from gridline.files.errors import UploadNotPending
from gridline.files.tables import UploadPart
from gridline.files.uploads import SWEEP_AFTER_SECONDS
from gridline.keeper import uploads
from gridline.storage import layout
from gridline.storage.objects import Store
from tests.gridline.files.in_parts import Sender
from tests.racing import together

LINE = b'{"custom_id":"a"}\n'
OVER = limits.UPLOAD_OPEN_SECONDS + SWEEP_AFTER_SECONDS


@pytest.fixture
def sender(database: Engine, clock: FrozenClock, store: Store) -> Sender:
    """An account that sends files in parts."""
    with unit_of_work() as work:
        return Sender(accounts.open_account(work, "tester").id, store)


def rows() -> int:
    """Parts that the database knows."""
    with unit_of_work() as work:
        return work.session.scalar(select(func.count()).select_from(UploadPart)) or 0


def test_what_is_over_is_swept_once(sender: Sender, clock: FrozenClock) -> None:
    """Objects and rows of an expired upload's parts go when its time and the grace are over, not a second before."""
    upload_id = sender.open(len(LINE))
    sender.part(upload_id, LINE)
    clock.advance(seconds=OVER - 1)
    assert (uploads.sweep(), len(sender.objects("uploads")), rows()) == (0, 1, 1)
    clock.advance(seconds=1)
    assert (uploads.sweep(), sender.objects("uploads"), rows()) == (1, [], 0)
    swept = sender.upload(upload_id)
    assert (swept.status, swept.swept_at) == ("expired", clock.now())
    clock.advance(days=1)
    assert uploads.sweep() == 0
    assert sender.upload(upload_id).swept_at == swept.swept_at


def test_a_live_upload_is_left_alone(sender: Sender, clock: FrozenClock) -> None:
    """Sweeping one upload touches no other."""
    sender.open(len(LINE))
    clock.advance(seconds=OVER)
    live = sender.open(len(LINE))
    part_id = sender.part(live, LINE)
    assert uploads.sweep() == 1
    assert sender.complete(live, [part_id]).fresh


@pytest.mark.parametrize("how", ["completed", "cancelled"])
def test_what_a_crash_left_is_swept(
    sender: Sender, store: Store, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Parts that stayed behind an ended upload, and objects without a row, go; the upload's end and file stay."""
    upload_id = sender.open(len(LINE))
    part_id = sender.part(upload_id, LINE)
    end: dict[str, Callable[[], object]] = {
        "completed": lambda: sender.complete(upload_id, [part_id]),
        "cancelled": lambda: sender.cancel(upload_id),
    }

    def away(_prefix: str) -> int:
        raise Unavailable("The store is away.")

    with monkeypatch.context() as patch:
        patch.setattr(store, "delete_prefix", away)
        end[how]()
    store.put_once(layout.upload_part_key(sender.account_id, upload_id, "part_x"), b"x")
    assert len(sender.objects("uploads")) == 2
    clock.advance(seconds=OVER)
    assert uploads.sweep() == 1
    assert (sender.objects("uploads"), rows(), sender.upload(upload_id).status) == ([], 0, how)
    assert len(sender.objects("files")) == len(sender.files()) == (how == "completed")


def test_a_sweep_that_breaks_off_goes_on(
    sender: Sender, store: Store, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload is noted as swept only once its objects are gone."""
    sender.part(sender.open(len(LINE)), LINE)
    clock.advance(seconds=OVER)

    def away(_prefix: str) -> int:
        raise Unavailable("The store is away.")

    with monkeypatch.context() as patch:
        patch.setattr(store, "delete_prefix", away)
        with pytest.raises(Unavailable):
            uploads.sweep()
    assert uploads.sweep() == 1
    assert sender.objects("uploads") == []


def test_two_keepers_may_sweep_at_once(sender: Sender, clock: FrozenClock) -> None:
    """Several sweeps at the same moment end without an error and leave nothing."""
    for _ in range(3):
        sender.part(sender.open(len(LINE)), LINE)
    clock.advance(seconds=OVER)
    assert [one for one in together(4, uploads.sweep) if isinstance(one, Exception)] == []
    assert (sender.objects("uploads"), rows()) == ([], 0)


def test_many_are_swept_some_at_a_time(
    sender: Sender, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pass has a bound, and the next goes on where it ended."""
    monkeypatch.setattr(uploads, "PASS_MAX", 2)
    for _ in range(3):
        sender.open(1)
    clock.advance(seconds=OVER)
    assert [uploads.sweep() for _ in range(3)] == [2, 1, 0]


def test_a_part_that_arrives_after_the_sweep_leaves_nothing(
    sender: Sender, store: Store, clock: FrozenClock
) -> None:
    """However slowly a part came, it is refused and takes its object with it."""
    upload_id = sender.open(len(LINE))
    with unit_of_work() as work:
        room = parts.room(work, account_id=sender.account_id, upload_id=upload_id)
    with parts.receive(store, room) as incoming:
        incoming.write(LINE)
        clock.advance(seconds=OVER)
        assert uploads.sweep() == 1
    with pytest.raises(UploadNotPending):
        parts.keep(store, incoming)
    assert sender.objects("uploads") == []
