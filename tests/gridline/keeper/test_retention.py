"""What the keeper deletes when its time is over, and what it must leave."""

import os
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import select

from gridline import limits
from gridline.batches import finishing, partial
from gridline.batches.states import Status
from gridline.batches.tables import Batch
from gridline.customers.tables import Account
from gridline.db.work import unit_of_work
from gridline.errors import NotFound, Unavailable
from gridline.files import receiving
from gridline.files.tables import File
from gridline.keeper import retention
from gridline.keeper.__main__ import duties
from gridline.keeper.retention import drop_unfinished, expire_files, purge_batches
from gridline.profiles.profile import load
from gridline.storage import layout
from tests.gridline.batches.bench import Bench
from tests.gridline.keeper.fake_airflow import FakeAirflow
from tests.racing import together

LINE = b'{"custom_id":"a"}\n'


def upload(bench: Bench, data: bytes = LINE) -> File:
    """An input that is kept for a week."""
    with receiving.receive(bench.store, bench.account_id, load("gridline")) as incoming:
        incoming.name("r.jsonl")
        incoming.write(data)
    return receiving.keep(bench.store, incoming, expires_after_seconds=3_600)


def done(bench: Bench) -> Batch:
    """A batch that has completed, with its output file."""
    batch = bench.held()
    bench.segment(batch, 0, [0, 1], lease="l0")
    bench.claim(batch, 0, lease="l0", state="done")
    assert finishing.finish(batch.id, run_over=True) == Status.COMPLETED
    return batch


def used(bench: Bench) -> tuple[int, int]:
    """Files and bytes that count against the quota."""
    with unit_of_work() as work:
        account = work.session.get_one(Account, bench.account_id)
        return account.files_count, account.files_bytes


def test_an_expired_file_goes_with_its_object_and_room(bench: Bench) -> None:
    """A week after its upload, to the second; a second pass finds nothing."""
    file = upload(bench)
    bench.clock.advance(days=7, seconds=-1)
    assert (expire_files(), bench.store.list("files/")) == (0, [file.object_key])
    bench.clock.advance(seconds=1)
    assert (expire_files(), bench.store.list("files/"), used(bench)) == (1, [], (0, 0))
    assert expire_files() == 0


def test_a_file_that_a_live_batch_reads_is_kept(bench: Bench) -> None:
    """However long over its time is, it goes only once the batch has ended."""
    file = upload(bench)
    batch = bench.create(file_id=file.id)
    with unit_of_work() as work:
        work.session.get_one(File, file.id).expires_at = work.now
    bench.clock.advance(days=30)
    assert expire_files() == 0
    with unit_of_work() as work:
        work.session.get_one(Batch, batch.id).ended_at = work.now
    assert expire_files() == 1


def test_output_is_kept_for_thirty_days_or_as_asked(bench: Bench) -> None:
    """From when it was written; ``output_expires_after`` to the second."""
    long = done(bench)
    batch = bench.held()
    with unit_of_work() as work:
        work.session.get_one(Batch, batch.id).output_expires_after_seconds = 3_600
    bench.segment(batch, 0, [0, 1], lease="l1")
    bench.claim(batch, 0, lease="l1", state="done")
    finishing.finish(batch.id, run_over=True)
    with unit_of_work() as work:
        keys = {
            file.batch_id: file.object_key
            for file in work.session.scalars(select(File).where(File.purpose == "batch_output"))
        }
    short = keys[batch.id]
    bench.clock.advance(seconds=3_599)
    assert expire_files() == 0
    bench.clock.advance(seconds=1)
    assert (expire_files(), bench.store.size(short)) == (1, None)
    bench.clock.advance(days=30, seconds=-3_601)
    assert expire_files() == 0
    bench.clock.advance(seconds=1)
    assert (expire_files(), bench.store.size(keys[long.id])) == (1, None)


def test_a_download_under_way_keeps_its_bytes(bench: Bench) -> None:
    """A reader that has begun reads the whole file, though it expires meanwhile."""
    data = LINE + b" " * 300_000
    file = upload(bench, data)
    stream: Iterator[bytes] = bench.store.stream(file.object_key, chunk_bytes=1_000)
    read = next(stream)
    bench.clock.advance(days=7)
    assert expire_files() == 1
    assert read + b"".join(stream) == data


def test_several_keepers_expire_at_once(bench: Bench) -> None:
    """Each file goes once and its room comes back once."""
    for _ in range(5):
        upload(bench)
    bench.clock.advance(days=7)
    gone = together(4, expire_files)
    assert sum(one for one in gone if isinstance(one, int)) == 5
    assert (used(bench), bench.store.list("files/")) == ((0, 0), [])


def test_a_batchs_prompts_go_a_day_after_its_end(bench: Bench) -> None:
    """Partitions, segments and progress are deleted 24 h after the end, once; its files and figures stay."""
    batch, live = done(bench), bench.held()
    with unit_of_work() as work:
        (output,) = work.session.scalars(select(File).where(File.batch_id == batch.id))
    bench.clock.advance(hours=limits.BATCH_OBJECTS_KEEP_HOURS, seconds=-1)
    assert purge_batches() == 0
    bench.clock.advance(seconds=1)
    assert (purge_batches(), purge_batches()) == (1, 0)
    assert bench.store.list(layout.batch_prefix(batch.id)) == []
    assert bench.store.size(output.object_key) == output.bytes
    assert bench.store.list(layout.batch_prefix(live.id)) != []
    assert finishing.finish(batch.id, run_over=True) == Status.COMPLETED
    with unit_of_work() as work:
        standing = partial.standing(work, account_id=bench.account_id, batch_id=batch.id)
        assert standing.batch.objects_deleted_at == bench.clock.now()
    with pytest.raises(NotFound, match="can no longer be read"):
        partial.page(bench.store, standing, after=None, lines_max=10)


def test_a_purge_that_breaks_off_goes_on(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is noted only once all its objects are gone."""
    batch = done(bench)
    bench.clock.advance(days=1)

    def away(_prefix: str) -> int:
        raise Unavailable("The store is away.")

    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "delete_prefix", away)
        with pytest.raises(Unavailable):
            purge_batches()
    assert (purge_batches(), bench.store.list(layout.batch_prefix(batch.id))) == (1, [])


def test_what_a_killed_writer_left_goes_after_an_hour(bench: Bench) -> None:
    """An object that is still being written is left alone and becomes whole."""
    root = bench.store._backend.root  # type: ignore[attr-defined]  # what no key names
    left = root / ".incoming" / "1-dead"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_bytes(b"half")
    old = (bench.clock.now() - timedelta(hours=1, seconds=1)).timestamp()
    os.utime(left, (old, old))
    with bench.store.writer("files/a/b") as writer:
        writer.write(b"whole")
        assert (drop_unfinished(), left.exists()) == (1, False)
    assert bench.store.read("files/a/b") == b"whole"
    assert drop_unfinished() == 0


def test_one_step_has_a_bound(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step leaves is the next one's."""
    monkeypatch.setattr(retention, "PASS_MAX", 2)
    for _ in range(3):
        upload(bench)
    bench.clock.advance(days=7)
    assert [retention.retain() for _ in range(3)] == [2, 1, 0]


def test_retention_is_a_duty(fake: FakeAirflow) -> None:
    """The keeper that is started deletes once a minute, and looks for orphans once an hour."""
    every = {duty.name: duty.every_seconds for duty in duties(fake.client())}
    assert (every["retention"], every["orphans"]) == (60, 3_600)
