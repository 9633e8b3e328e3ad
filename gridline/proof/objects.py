"""Proves that files can be read: each visible one has its object, as long as its row says. Reads no content."""

from collections.abc import Iterator

from sqlalchemy import Select, func, select

from gridline import storage
from gridline.db.work import unit_of_work
from gridline.files.tables import File

SAMPLE_MAX = 500
PAGE = 1_000


def prove(*, everything: bool) -> list[str]:
    """A sentence for each file whose object is missing or of another size.

    Args:
        everything: look at every file; otherwise at a sample of ``SAMPLE_MAX``, another one each hour.
    """
    broken = []
    for page in _pages() if everything else [_sample()]:
        off = [(one, size) for one in page if (size := storage.store().size(one.object_key)) != one.bytes]
        there = _still_there([one.id for one, _ in off])
        broken += [_sentence(one, size) for one, size in off if one.id in there]
    return broken


def _sentence(file: File, size: int | None) -> str:
    found = "is missing" if size is None else f"has {size}"
    return f"file {file.id} of account {file.account_id} has {file.bytes} bytes, its object {found}"


def _sample() -> list[File]:
    with unit_of_work() as work:
        hour = work.now.strftime("%Y-%m-%d %H")
        return list(work.session.scalars(_visible().order_by(func.md5(File.id + hour)).limit(SAMPLE_MAX)))


def _pages() -> Iterator[list[File]]:
    last = -1
    while True:
        with unit_of_work() as work:
            page = list(
                work.session.scalars(
                    _visible().where(File.sequence > last).order_by(File.sequence).limit(PAGE)
                )
            )
        if not page:
            return
        yield page
        last = page[-1].sequence


def _visible() -> Select[File]:
    return select(File).where(File.deleted_at.is_(None))


def _still_there(file_ids: list[str]) -> set[str]:
    """Which of them nobody deleted while they were looked at."""
    if not file_ids:
        return set()
    with unit_of_work() as work:
        rows = select(File.id).where(File.id.in_(file_ids), File.deleted_at.is_(None))
        return set(work.session.scalars(rows))
