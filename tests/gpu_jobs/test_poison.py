import json

import pytest

from gridline.lines.exits import JobExit
from tests.gpu_jobs.conftest import Partition

pytestmark = pytest.mark.programs

DELIVERED = None


def test_line_that_always_kills_the_engine(partition: Partition) -> None:
    """A line that kills the engine twice becomes server_error; every other line is delivered."""
    partition.write(["a", "!die", *(f"!sleep=0.2 {number}" for number in range(6))])
    assert partition.run() is JobExit.DONE
    assert partition.codes() == [DELIVERED, "server_error", *[DELIVERED] * 6]
    assert partition.sent().count("!die") == 2
    assert partition.engines() == 3
    row = partition.rows()[1]
    assert (row.status_code, row.input_tokens, row.output_tokens) == (500, 0, 0)
    assert set(json.loads(row.body)["error"]) == {"message", "type", "param", "code"}


def test_core_that_dies_first(partition: Partition) -> None:
    """A 500 to all in flight from an engine that is dying is a death, not their own failure."""
    partition.write(["!sicken", *(f"!sleep=0.4 {number}" for number in range(5))])
    assert partition.run() is JobExit.DONE
    assert partition.codes() == ["server_error", *[DELIVERED] * 5]


def test_engine_killed_from_outside(partition: Partition) -> None:
    """An engine that dies once for any reason costs no line."""
    partition.write(["!die-once", *(f"!sleep=0.2 {number}" for number in range(5))])
    assert partition.run() is JobExit.DONE
    assert partition.codes() == [DELIVERED] * 6
    assert partition.engines() == 2


def test_few_suspects_run_alone(partition: Partition) -> None:
    """A few lines that were in flight at a death run one at a time, so that the next death has one cause."""
    texts = ["!sleep=0.2 !die-once", *(f"!sleep=0.6 {number}" for number in range(4))]
    partition.write(texts)
    assert partition.run() is JobExit.DONE
    first, then = partition.journalled()[:5], partition.journalled()[5:]
    assert max(one["flying"] for one in first) == 5
    assert sorted(one["text"] for one in then) == sorted(texts)
    assert {one["flying"] for one in then} == {1}


def test_many_suspects_run_in_groups(partition: Partition) -> None:
    """A death that no line caused costs no long queue: its many lines run again, a group at a time."""
    texts = ["!sleep=0.2 !die-once", *(f"!sleep=0.6 {number}" for number in range(24))]
    partition.write(texts)
    assert partition.run() is JobExit.DONE
    assert partition.codes() == [DELIVERED] * 25
    then = partition.journalled()[25:]
    assert sorted(one["text"] for one in then) == sorted(texts)
    assert max(one["flying"] for one in then) == 5


def test_killer_among_many_is_found(partition: Partition) -> None:
    """In flight with many, then in a group, then alone: the third death is its own, and nobody else is taken out."""
    texts = [
        *(f"!sleep=0.3 {number}" for number in range(12)),
        "!die",
        *(f"!sleep=0.3 {n}" for n in range(12, 24)),
    ]
    partition.write(texts)
    assert partition.run() is JobExit.DONE
    assert partition.codes() == [DELIVERED] * 12 + ["server_error"] + [DELIVERED] * 12
    assert partition.sent().count("!die") == 3
    assert partition.engines() == 4


def test_failure_of_a_healthy_engine(partition: Partition) -> None:
    """A 500 from a healthy engine is the line's own, after a second try, and stops nobody."""
    partition.write(["!status=500", "b", "!broken", "!nan", "!status=404"])
    assert partition.run() is JobExit.DONE
    assert partition.codes() == ["server_error", DELIVERED, *["server_error"] * 3]
    assert partition.engines() == 1
    assert partition.sent().count("!status=500") == 2


def test_refused_lines(partition: Partition) -> None:
    """What the engine refuses is the line's own error, with a code for a prompt over the context."""
    partition.write(["!status=400", "!overlong", "c"])
    assert partition.run() is JobExit.DONE
    assert partition.codes() == ["invalid_request", "context_length_exceeded", DELIVERED]
    assert [row.status_code for row in partition.rows()] == [400, 400, 200]
    assert json.loads(partition.rows()[0].body)["error"]["message"] == "as scripted"
    assert (partition.progress()["done"], partition.progress()["failed"]) == (1, 2)


def test_line_that_never_ends(partition: Partition) -> None:
    """A line that the engine never finishes has a time bound."""
    one = partition.like(line_seconds_max=0.5)
    one.write(["!hang", "b"])
    assert one.run() is JobExit.DONE
    assert one.codes() == ["server_error", DELIVERED]
