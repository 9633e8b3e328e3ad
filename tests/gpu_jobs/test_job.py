import asyncio
import json
import threading
from dataclasses import replace

import pytest

from gpu_jobs import stopping
from gridline.lines.exits import JobExit
from gridline.lines.segments import ResultRow, write_rows
from gridline.storage import Store, StoreUnavailable, layout
from tests.gpu_jobs.conftest import QUICK, Partition, until

pytestmark = pytest.mark.programs


def test_every_line_has_its_row(partition: Partition) -> None:
    """Every line ends with exactly one row that holds the answer to its own request."""
    texts = [f"question {number}" for number in range(150)]
    partition.write(texts)
    assert partition.run() is JobExit.DONE
    rows = partition.rows()
    assert [row.line for row in rows] == list(range(150))
    assert [row.custom_id for row in rows] == [f"c{number}" for number in range(150)]
    assert partition.said() == [f"echo: {text}" for text in texts]
    assert {row.status_code for row in rows} == {200}
    assert [(row.input_tokens, row.output_tokens) for row in rows] == [(2, 3)] * 150
    assert sorted(partition.sent()) == sorted(texts)
    assert partition.progress() == {
        "format": 1,
        "state": "done",
        "done": 150,
        "failed": 0,
        "lines": 150,
        "sequence": partition.progress()["sequence"],
        "engine_healthy": True,
        "engine_version": "stub-1",
        "engine_deaths": 0,
        "runner_version": partition.progress()["runner_version"],
    }


def test_the_platform_knows_of_a_healthy_engine_before_a_line_runs(partition: Partition) -> None:
    """A job that dies in its first seconds was healthy all the same: else its closed segments would be run again."""
    partition.rhythm = replace(QUICK, beat=60)
    partition.write(["!sleep=0.5 one"])
    job = threading.Thread(target=partition.run)
    job.start()
    until(partition.sent)
    stated = partition.progress()
    job.join()
    assert (stated["state"], stated["engine_healthy"], stated["done"]) == ("running", True, 0)


def test_equal_custom_ids_never_meet(partition: Partition) -> None:
    """Lines with the same custom_id keep their own answers and their own request ids, also across batches."""
    other = partition.like()
    for one in (partition, other):
        one.write([f"{one.batch_id} first", f"{one.batch_id} second"], ids=["same", "same"])
        assert one.run() is JobExit.DONE
        assert one.said() == [f"echo: {one.batch_id} first", f"echo: {one.batch_id} second"]
    rows = [*partition.rows(), *other.rows()]
    assert len({row.request_id for row in rows}) == 4
    assert len({json.loads(row.body)["id"] for row in rows}) == 4


def test_embeddings(partition: Partition) -> None:
    """Embedding lines are answered through the same job."""
    one = partition.like(endpoint="/v1/embeddings")
    one.write([], bodies=[{"input": "hello"}, {"input": ["a", "bc"]}])
    assert one.run() is JobExit.DONE
    bodies = [json.loads(row.body) for row in one.rows()]
    assert [len(body["data"]) for body in bodies] == [1, 2]
    assert bodies[1]["data"][1] == {"object": "embedding", "index": 1, "embedding": [2.0] * 8}
    assert {tuple(body) for body in bodies} == {("object", "data", "model", "usage")}


def test_resumes_after_earlier_attempts(partition: Partition) -> None:
    """A later attempt does only what no closed segment of an earlier one holds, and counts both."""
    partition.write([f"t{number}" for number in range(6)])
    earlier = [ResultRow(line, f"c{line}", 200, "r", "{}", None, partition.model, 1, 1) for line in (1, 3)]
    earlier.append(ResultRow(4, "c4", 400, "r", "{}", "invalid_request", partition.model, 0, 0))
    partition.store.put_once(layout.segment_key(partition.prefix(1), 0), write_rows(earlier))
    assert partition.run(attempt=2) is JobExit.DONE
    assert sorted(partition.sent()) == ["t0", "t2", "t5"]
    assert [row.line for row in partition.rows(2)] == [0, 2, 5]
    progress = partition.progress(2)
    assert (progress["done"], progress["failed"], progress["lines"]) == (5, 1, 6)


def test_run_again_under_the_same_lease(partition: Partition) -> None:
    """The same order run twice overwrites no segment and answers no line twice."""
    partition.write(["a", "b"])
    assert partition.run() is JobExit.DONE
    assert partition.run() is JobExit.DONE
    assert [row.line for row in partition.rows()] == [0, 1]
    assert len(partition.sent()) == 2


def test_cancel_gives_lines_in_flight_a_grace(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a cancel what ends within the grace is kept, what does not has no row, and nothing new is sent."""
    monkeypatch.setitem(stopping.GRACE_SECONDS, "cancel", 1.5)
    partition.write(
        [
            "!sleep=0.6 longest: sent first",
            "!hang and long: sent next",
            *(f"!sleep=0.3 {number}" for number in range(60)),
        ]
    )

    async def run() -> JobExit:
        job = asyncio.create_task(partition.job().run())
        await asyncio.to_thread(until, lambda: len(partition.sent()) == 32)
        partition.store.replace(layout.stop_key(partition.prefix()), b'{"format": 1, "reason": "cancel"}')
        return await job

    assert asyncio.run(run()) is JobExit.STOPPED
    lines = [row.line for row in partition.rows()]
    assert 0 in lines
    assert 1 not in lines
    assert len(partition.sent()) < 62
    assert partition.progress()["state"] == "stopped"
    assert partition.progress()["done"] == len(lines) == len(partition.sent()) - 1


@pytest.mark.parametrize("reason", ["deadline", "lease_lost"])
def test_other_stops_wait_for_nobody(partition: Partition, reason: str) -> None:
    """A deadline or a lost lease leaves lines in flight where they are and keeps what is finished."""
    partition.write(["quick", "!hang"])

    async def run() -> JobExit:
        job = asyncio.create_task(partition.job().run())
        await asyncio.to_thread(until, partition.rows)
        body = json.dumps({"format": 1, "reason": reason}).encode()
        partition.store.replace(layout.stop_key(partition.prefix()), body)
        async with asyncio.timeout(5):
            return await job

    assert asyncio.run(run()) is JobExit.STOPPED
    assert [row.line for row in partition.rows()] == [0]


def test_past_deadline(partition: Partition) -> None:
    """A job stops by itself at its deadline."""
    partition.write(["!hang"])
    assert partition.run(deadline_unix=1) is JobExit.STOPPED
    assert partition.rows() == []


def test_stops_while_the_engine_starts(partition: Partition) -> None:
    """A stop is obeyed also while the engine is not there yet, and progress says that it loads."""
    slow = partition.like(engine_arguments=("--start-seconds", "8"))
    slow.write(["x"])

    async def run() -> JobExit:
        job = asyncio.create_task(slow.job().run())
        await asyncio.sleep(0.3)
        assert slow.progress()["state"] == "loading"
        assert slow.progress()["engine_healthy"] is False
        slow.store.replace(layout.stop_key(slow.prefix()), b'{"format": 1, "reason": "cancel"}')
        return await job

    assert asyncio.run(run()) is JobExit.STOPPED


def test_engine_that_never_starts(partition: Partition) -> None:
    """An engine that never became healthy is told apart from every other end, and no line is blamed."""
    bad = partition.like(engine_arguments=("--refuse-to-start",))
    bad.write(["x"])
    assert bad.run() is JobExit.ENGINE_UNHEALTHY
    assert bad.rows() == []
    assert bad.progress()["state"] == "engine_unhealthy"


def test_no_engine_keeper(partition: Partition) -> None:
    """Without an engine keeper the job gives up as one whose engine never became healthy."""
    alone = partition.like(socket=partition.socket.with_name("nobody.sock"))
    alone.write(["x"])
    assert alone.run() is JobExit.ENGINE_UNHEALTHY


class Flaky(Store):
    """A store whose next writes fail."""

    failures = 5

    def put_once(self, key: str, data: bytes) -> bool:
        """Fail while there are failures left."""
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("away")
        return super().put_once(key, data)


def test_store_away_for_a_moment(partition: Partition) -> None:
    """Rows that could not be written are written once the store is back."""
    partition.write(["a", "!sleep=1.2"])
    assert partition.run(store=Flaky(partition.url)) is JobExit.DONE
    assert [row.line for row in partition.rows()] == [0, 1]


def test_store_away_for_good(partition: Partition) -> None:
    """A job that nobody can see any more ends instead of working for nothing."""

    class Away(Store):
        def replace(self, key: str, data: bytes) -> None:
            raise StoreUnavailable(f"away for {len(data)} bytes of {key}")

    one = partition.like(rhythm=replace(QUICK, store_away=0.3))
    one.write(["!hang"])
    with pytest.raises(ExceptionGroup):
        one.run(store=Away(one.url))
