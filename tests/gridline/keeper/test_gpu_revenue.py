"""GPU time against revenue (product M1): what batches took of GPUs beside what they brought in."""

from click.testing import CliRunner

from gridline.batches.finishing import finish
from gridline.batches.tables import Batch
from gridline.capacity import attempts
from gridline.capacity.allocator import allocate
from gridline.cli.main import main
from gridline.db.work import unit_of_work
from gridline.keeper.figures import measure_gpu_use
from gridline.ledger import correcting
from gridline.lines.exits import JobExit
from gridline.telemetry import metrics
from tests.gridline.batches.bench import MODEL, Bench
from tests.gridline.capacity.yard import Yard, lease_id

HEAD = "gpu seconds\tlines\tinput tokens\toutput tokens\tcharged\trefunded\tcredits a gpu hour"


def ended(yard: Yard, bench: Bench) -> Batch:
    """A batch of two lines that took 30 s in an attempt that crashed and 60 s in one that did its work."""
    batch = bench.held()
    for attempt, (seconds, how) in enumerate(((30, JobExit.CRASHED), (60, JobExit.DONE)), start=1):
        allocate()
        order = yard.begin(batch.id)
        yard.progress(order, done=0)
        yard.clock.advance(seconds=seconds)
        if how is JobExit.DONE:
            bench.segment(batch, 0, [0, 1], lease=lease_id(order), attempt=attempt)
            yard.progress(order, done=2)
        attempts.end(batch.id, 0, lease_id(order), how)
    finish(batch.id, run_over=True)
    return batch


def usage(*arguments: str) -> list[str]:
    """The lines that the command prints."""
    done = CliRunner().invoke(main, ["ops", "usage", *arguments])
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def test_a_failed_attempt_is_paid_by_nobody_and_shown(yard: Yard, bench: Bench) -> None:
    """All leases of a batch count, over what it was charged: 20 tokens in at 10, 4 out at 20, in 90 seconds."""
    batch = ended(yard, bench)
    day = yard.clock.now().date().isoformat()
    figures = "90.0\t2\t20\t4\t0.000000280\t0.000000000\t0.000011"
    assert usage() == [
        f"day\tmodel\taccount\tbatches\t{HEAD}",
        f"{day}\t{MODEL}\ttester\t1\t{figures}",
        f"total\t\t\t1\t{figures}",
    ]
    assert usage("--by", "batch")[1] == f"{batch.id}\t1\t{figures}"


def test_refunds_are_taken_off_what_an_hour_brought(yard: Yard, bench: Bench) -> None:
    """A charge that was given back shows beside it, and the hour brought nothing."""
    batch = ended(yard, bench)
    with unit_of_work() as work:
        correcting.refund(work, batch.id, 280, actor="operator:ada", why="test", key="one")
    assert usage("--by", "model")[1].endswith("\t0.000000280\t0.000000280\t0.000000")


def test_days_are_those_of_the_end(yard: Yard, bench: Bench) -> None:
    """A batch is on its day alone; days without one have only the total; the wrong way round is a usage error."""
    ended(yard, bench)
    day = yard.clock.now().date().isoformat()
    yard.clock.advance(days=1)
    tomorrow = yard.clock.now().date().isoformat()
    assert len(usage("--from", day, "--to", day)) == 3
    assert usage("--from", tomorrow)[1:] == ["total\t\t\t0\t0.0\t0\t0\t0\t0.000000000\t0.000000000\t"]
    assert CliRunner().invoke(main, ["ops", "usage", "--from", tomorrow, "--to", day]).exit_code == 2


def test_the_keeper_shows_the_days_figures(yard: Yard, bench: Bench) -> None:
    """The metrics hold GPU seconds and credits of the batches that ended today, by model, and none of yesterday's."""
    ended(yard, bench)
    measure_gpu_use()
    assert metrics.REGISTRY.get_sample_value("gridline_gpu_seconds_today", {"model": MODEL}) == 90
    assert metrics.REGISTRY.get_sample_value("gridline_credits_charged_today", {"model": MODEL}) == 2.8e-07
    yard.clock.advance(days=1)
    measure_gpu_use()
    assert metrics.REGISTRY.get_sample_value("gridline_gpu_seconds_today", {"model": MODEL}) is None
