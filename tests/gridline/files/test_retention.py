"""How long files are kept, whatever was asked and whoever reads them."""

from datetime import timedelta

import pytest

from gridline import ids
from gridline.batches import intake
from gridline.batches.repeats import Sent
from gridline.batches.requests import CreateRequest
from gridline.clock import FrozenClock
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.files import keeping
from gridline.files.tables import File
from tests.gridline.files.conftest import Upload
from tests.racing import together

DAY = 86_400


def create(account_id: str, file_id: str, window: str = "24h") -> str:
    with unit_of_work() as work:
        # Equal creates would wait for one another, so no two of these are equal.
        wanted = CreateRequest(file_id, "/v1/chat/completions", window, {"n": ids.new("batch")}, None)
        made = intake.create(work, account_id=account_id, actor="token:t", request=wanted, sent=Sent())
        return made.batch.id


def kept_for(file_id: str) -> timedelta:
    """How long the file is kept from its upload on."""
    with unit_of_work() as work:
        file = work.session.get_one(File, file_id)
        assert file.expires_at is not None
        return file.expires_at - file.created_at


@pytest.mark.parametrize(
    ("asked", "days"), [(None, 30), (3_600, 7), (7 * DAY, 7), (8 * DAY, 8), (30 * DAY, 30)]
)
def test_an_input_is_kept_as_asked_and_at_least_a_week(
    upload: Upload, account_id: str, asked: int | None, days: int
) -> None:
    """The later of what was asked and what is promised; 30 days if nothing was."""
    assert kept_for(upload(seconds=asked).id) == timedelta(days=days)


@pytest.mark.parametrize(("window", "days"), [("24h", 1), ("72h", 3)])
def test_a_batch_keeps_its_input_a_week_past_its_window(
    upload: Upload, account_id: str, clock: FrozenClock, window: str, days: int
) -> None:
    """Creating a batch moves the file's expiry on, as seen at once; a longer one stays."""
    short, long = upload(seconds=3_600).id, upload(seconds=30 * DAY).id
    clock.advance(days=5)
    for file_id in (short, long):
        create(account_id, file_id, window)
    assert kept_for(short) == timedelta(days=5 + days + 7)
    assert kept_for(long) == timedelta(days=30)


def test_creates_at_once_keep_it_for_the_latest(upload: Upload, account_id: str) -> None:
    """None waits for ever for another, and the longest window wins."""
    file_id = upload(seconds=3_600).id
    with unit_of_work() as work:
        work.session.get_one(Account, account_id).open_batches_max = 20
    windows = ["24h", "72h"] * 8
    made = together(16, lambda: create(account_id, file_id, windows.pop()))
    assert all(isinstance(one, str) for one in made), made
    assert kept_for(file_id) == timedelta(days=10)


def test_a_file_expires_once_and_gives_its_room_back(
    upload: Upload, account_id: str, clock: FrozenClock
) -> None:
    """Not a second before its time; the second time changes nothing."""
    file = upload(seconds=3_600)
    clock.advance(days=7, seconds=-1)
    with unit_of_work() as work:
        assert keeping.expired(work, most=10) == []
        assert keeping.expire(work, file.id) is None
    clock.advance(seconds=1)
    with unit_of_work() as work:
        assert keeping.expired(work, most=10) == [file.id]
    gone = together(5, lambda: expire(file.id))
    assert sorted(map(str, gone)) == ["False"] * 4 + ["True"]
    with unit_of_work() as work:
        account = work.session.get_one(Account, account_id)
        assert (account.files_count, account.files_bytes) == (0, 0)
        assert work.session.get_one(File, file.id).deleted_at == clock.now()


def expire(file_id: str) -> bool:
    with unit_of_work() as work:
        return keeping.expire(work, file_id) is not None
