"""Objects that no row names: swept when they are old, never while their row may still come."""

import os
from datetime import timedelta

import pytest

from gridline import ids, limits
from gridline.batches import finishing, results
from gridline.batches.states import Status
from gridline.batches.tables import Batch
from gridline.db.work import unit_of_work
from gridline.files import keeping, receiving
from gridline.files.tables import File
from gridline.keeper import orphans
from gridline.keeper.orphans import sweep
from gridline.profiles.profile import load
from gridline.storage import layout
from tests.gridline.batches.bench import Bench
from tests.gridline.files.in_parts import Sender

LINE = b'{"custom_id":"a"}\n'


def age(bench: Bench, *, seconds: int = 1) -> None:
    """Make every object as old as the bound and some seconds."""
    at = (bench.clock.now() - timedelta(hours=limits.ORPHANS_KEEP_HOURS, seconds=seconds)).timestamp()
    for key in bench.store.list(""):
        os.utime(bench.store._backend.root / key, (at, at))  # type: ignore[attr-defined]


def half_uploaded(bench: Bench) -> str:
    """An upload whose process died between its object and its row; the object's key."""
    with receiving.receive(bench.store, bench.account_id, load("gridline")) as incoming:
        incoming.name("r.jsonl")
        incoming.write(LINE)
    return incoming.object_key


def uploaded(bench: Bench) -> File:
    with receiving.receive(bench.store, bench.account_id, load("gridline")) as incoming:
        incoming.name("r.jsonl")
        incoming.write(LINE)
    return receiving.keep(bench.store, incoming, expires_after_seconds=None)


def test_an_upload_that_crashed_is_swept_when_it_is_old(bench: Bench) -> None:
    """A day after it was written and not before: a younger one may be getting its row this moment."""
    key, kept = half_uploaded(bench), uploaded(bench).object_key
    age(bench, seconds=-1)
    assert (sweep(), bench.store.size(key)) == (0, len(LINE))
    age(bench)
    assert (sweep(), bench.store.list("files/")) == (1, [kept])
    assert sweep() == 0


def test_a_delete_that_crashed_is_made_good(bench: Bench) -> None:
    """A row that was marked deleted names nothing: its object goes."""
    file = uploaded(bench)
    with unit_of_work() as work:
        keeping.delete(work, account_id=bench.account_id, file_id=file.id, actor="token:t")
    age(bench)
    assert (sweep(), bench.store.list("files/")) == (1, [])


def test_results_of_a_batch_that_has_not_ended_are_kept(bench: Bench) -> None:
    """Files that were collated before a crash wait for the batch's end, however long that takes."""
    batch = bench.held()
    bench.segment(batch, 0, [0, 1], lease="l0")
    bench.claim(batch, 0, lease="l0", state="done")
    assert finishing.collate(batch.id) == Status.FINALIZING
    (key,) = bench.store.list("files/")
    assert layout.owner_id(key) in results.file_ids(batch.id)
    age(bench)
    assert sweep() == 0
    assert finishing.finish(batch.id, run_over=True) == Status.COMPLETED
    age(bench)
    assert (sweep(), bench.store.list("files/")) == (0, [key])


def test_what_a_killed_collation_of_an_ended_batch_left_goes(bench: Bench) -> None:
    """A result file that its batch's end did not name is nobody's."""
    batch = bench.create()
    output, error = (layout.file_key(bench.account_id, one) for one in results.file_ids(batch.id))
    for key in (output, error):
        bench.store.put_once(key, b"{}\n")
    with unit_of_work() as work:
        work.session.get_one(Batch, batch.id).ended_at = work.now
    age(bench)
    assert (sweep(), bench.store.list("files/")) == (2, [])


def test_what_came_after_a_purge_goes_too(bench: Bench) -> None:
    """A job from the dead that writes under a purged batch, and a batch that no row knows."""
    live = bench.held()
    gone = bench.create()
    with unit_of_work() as work:
        work.session.get_one(Batch, gone.id).objects_deleted_at = work.now
    for batch_id in (gone.id, ids.new("batch")):
        bench.store.put_once(layout.segment_key(layout.attempt_prefix(batch_id, 0, 1, "l"), 1), b"x")
    kept = bench.store.list(layout.batch_prefix(live.id))
    age(bench)
    assert (sweep(), bench.store.list("batches/")) == (2, kept)


def test_parts_of_uploads_that_are_over_go(bench: Bench) -> None:
    """A part that outlived its upload's sweep is swept, a live upload's part is not."""
    sender = Sender(bench.account_id, bench.store)
    upload_id = sender.open(len(LINE))
    sender.part(upload_id, LINE)
    bench.store.put_once(layout.upload_part_key(bench.account_id, ids.new("upload"), "part_x"), b"x")
    age(bench)
    assert (sweep(), len(sender.objects("uploads"))) == (1, 1)


def test_a_store_of_another_database_is_left_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If most objects have no row, nothing is deleted and the log says why."""
    monkeypatch.setattr(orphans, "SUSPECT_MIN", 3)
    for _ in range(4):
        half_uploaded(bench)
    uploaded(bench)
    age(bench)
    assert (sweep(), len(bench.store.list("files/"))) == (0, 5)
    assert "Is this the store's own database?" in caplog.text
