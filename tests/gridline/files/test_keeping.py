"""Kept files: reading, pages, deletion."""

from collections.abc import Callable

import pytest
from sqlalchemy import update

from gridline import ids
from gridline.batches import intake
from gridline.batches.repeats import Sent
from gridline.batches.requests import CreateRequest
from gridline.batches.tables import Batch
from gridline.customers import accounts
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import NotFound
from gridline.files import keeping
from gridline.files.errors import FileInUse
from gridline.files.tables import File
from tests.gridline.files.conftest import Upload
from tests.racing import together


def page(
    account_id: str, after: str | None = None, limit: int = 2, *, oldest_first: bool = False
) -> list[str]:
    """Ids of one page."""
    with unit_of_work() as work:
        files, _ = keeping.page(
            work, account_id=account_id, purpose=None, after=after, limit=limit, oldest_first=oldest_first
        )
        return [file.id for file in files]


def delete(account_id: str, file_id: str) -> File:
    with unit_of_work() as work:
        return keeping.delete(work, account_id=account_id, file_id=file_id, actor="token:t")


def create(account_id: str, file_id: str) -> Batch:
    with unit_of_work() as work:
        wanted = CreateRequest(file_id, "/v1/chat/completions", "24h", None, None)
        created = intake.create(work, account_id=account_id, actor="token:t", request=wanted, sent=Sent())
        return created.batch


def test_pages_hold_every_file_once_in_both_orders(upload: Upload, account_id: str) -> None:
    """Five files of the same second: pages of two, newest first by default, and an empty page past the end."""
    made = [upload().id for _ in range(5)]
    for oldest_first, wanted in ((True, made), (False, made[::-1])):
        seen: list[str] = []
        while found := page(account_id, seen[-1] if seen else None, oldest_first=oldest_first):
            seen += found
        assert seen == wanted


def test_has_more_is_exact(upload: Upload, account_id: str) -> None:
    """A page that ends with the last file says so."""
    for _ in range(4):
        upload()
    with unit_of_work() as work:
        first, more = keeping.page(
            work, account_id=account_id, purpose="batch", after=None, limit=2, oldest_first=True
        )
        _, still = keeping.page(
            work, account_id=account_id, purpose="batch", after=first[-1].id, limit=2, oldest_first=True
        )
        none, _ = keeping.page(
            work, account_id=account_id, purpose="batch_output", after=None, limit=2, oldest_first=True
        )
    assert (more, still, list(none)) == (True, False, [])


def test_a_deleted_file_still_marks_its_place(upload: Upload, account_id: str) -> None:
    """Deleting while walking the pages skips and repeats nothing."""
    made = [upload().id for _ in range(4)]
    delete(account_id, made[1])
    assert page(account_id, made[1], oldest_first=True) == made[2:]


def test_foreign_missing_and_odd_ids_are_the_same(upload: Upload) -> None:
    """Another account's id, a random one and text that is no id get the same answer everywhere."""
    file_id = upload().id
    with unit_of_work() as work:
        stranger = accounts.open_account(work, "stranger").id
    for one in (file_id, ids.new("file"), "file-\0", "../../etc/passwd", ""):
        with unit_of_work() as work:
            with pytest.raises(NotFound) as caught:
                keeping.get(work, account_id=stranger, file_id=one)
            assert caught.value.message == f"No such File object: {one}"
            with pytest.raises(NotFound):
                keeping.delete(work, account_id=stranger, file_id=one, actor="token:t")
        with pytest.raises(NotFound):
            page(stranger, one)
    assert page(stranger) == []


def test_a_deleted_file_is_gone_and_its_room_free(upload: Upload, account_id: str) -> None:
    """After a delete the file is missing, also for a second delete, and the quota is back."""
    file = upload()
    delete(account_id, file.id)
    with pytest.raises(NotFound):
        delete(account_id, file.id)
    with unit_of_work() as work:
        account = work.session.get_one(Account, account_id)
        assert (account.files_count, account.files_bytes) == (0, 0)


def test_a_file_in_use_is_kept(upload: Upload, account_id: str) -> None:
    """A batch that has not ended keeps its input; once it has ended the file can go."""
    file = upload()
    batch = create(account_id, file.id)
    with pytest.raises(FileInUse, match=batch.id):
        delete(account_id, file.id)
    with unit_of_work() as work:
        work.session.get_one(Batch, batch.id).ended_at = work.now
    delete(account_id, file.id)


def test_delete_and_create_at_once_never_both_win(upload: Upload, account_id: str) -> None:
    """A file is either deleted and the create finds none, or in use and the delete is refused."""
    for _ in range(5):
        file_id = upload().id
        answers = race(account_id, file_id)
        assert {type(answer) for answer in answers} in ({File, NotFound}, {Batch, FileInUse})
        with unit_of_work() as work:
            work.session.execute(update(Batch).values(ended_at=work.now))
            work.session.execute(update(Account).values(open_batches=0))


def race(account_id: str, file_id: str) -> list[object]:
    """A delete and a create that start at the same moment."""
    calls: list[Callable[[str, str], object]] = [delete, create]
    return list(together(2, lambda: calls.pop()(account_id, file_id)))
