"""The gauges that alerts on waits and engines ask for."""

from gridline.capacity.allocator import allocate
from gridline.keeper.figures import measure
from gridline.lines.exits import JobExit
from gridline.telemetry import metrics
from tests.gridline.batches.bench import Bench
from tests.gridline.capacity.yard import Yard


def gauge(name: str, **labels: str) -> float | None:
    """A gauge's value after a measurement."""
    measure()
    return metrics.REGISTRY.get_sample_value(name, labels)


def test_the_oldest_wait_of_each_reason_is_shown(yard: Yard, bench: Bench) -> None:
    """In seconds since that batch has its reason, and gone once no batch has it."""
    bench.create()
    yard.clock.advance(seconds=60)
    newer = bench.create()
    yard.clock.advance(seconds=30)
    assert gauge("gridline_batches_oldest_wait_seconds", reason="starting") == 90
    yard.change(newer.id, reason_code="customer_credit", reason_since=yard.clock.now())
    yard.clock.advance(seconds=5)
    assert gauge("gridline_batches_oldest_wait_seconds", reason="starting") == 95
    assert gauge("gridline_batches_oldest_wait_seconds", reason="customer_credit") == 5
    yard.change(newer.id, reason_code=None, reason_since=None)
    assert gauge("gridline_batches_oldest_wait_seconds", reason="customer_credit") is None


def test_a_batch_without_an_engine_is_counted_until_one_is_healthy(yard: Yard, bench: Bench) -> None:
    """Once, however many attempts found none; not while the first one runs, and no more when a later one is healthy."""
    batch = bench.held()
    for _ in range(2):
        allocate()
        order = yard.begin(batch.id)
        yard.end(batch.id, order, JobExit.ENGINE_UNHEALTHY)
        yard.clock.advance(minutes=5)
    assert gauge("gridline_batches_without_engine") == 1
    allocate()
    order = yard.begin(batch.id)
    assert gauge("gridline_batches_without_engine") == 1
    yard.progress(order, done=0)
    yard.end(batch.id, order, JobExit.CRASHED)
    assert gauge("gridline_batches_without_engine") == 0
