"""kill -9 before and after every commit and every write of the store, in every step of a batch, and what it comes to.

Each case goes back to the state before the step, lets the step die at one point, takes it again as its process would
after a restart, and drives the platform on until every batch has ended.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.faults.crash_bench import NEIGHBOUR, Bench, Ended, Kill, ended
from tests.faults.crash_world import LINES, NEIGHBOUR_LINES

pytestmark = [pytest.mark.programs, pytest.mark.timeout(600)]

START = ("setup", "upload", "create", "dispatch", "validate", "hold_credits", "allocate", "look_for_grant")
FIRST = ("begin 0", "job 0", "follow", "end 0")
SECOND = ("begin 1", "job 1", "end 1")


@dataclass(frozen=True)
class Scenario:
    """Steps in their order, those that die (all but ``setup`` if none is named), and how the batch ends."""

    steps: tuple[str, ...]
    ends: Ended
    dying: tuple[str, ...] = ()


DELIVERED = LINES - 3
COMPLETED = Ended("completed", DELIVERED, 3, 0, None)
SCENARIOS = {
    "completed": Scenario((*START, *FIRST, *SECOND, "collate", "settle"), COMPLETED),
    "in parts": Scenario(
        ("setup", "open_upload", "send_part 0", "send_part 1", "complete_upload", "create"), COMPLETED
    ),
    "never collated": Scenario((*START, *FIRST, *SECOND, "settle"), COMPLETED, ("settle",)),
    "cancelled": Scenario(
        (*START, *FIRST, "begin 1", "cancel", "enforce", "end 1 stopped", "enforce"),
        Ended("cancelled", 31, 2, 31, None),
        ("cancel", "enforce", "end 1 stopped"),
    ),
    "expired": Scenario(
        (*START, *FIRST, "begin 1", "serve_neighbour", "later 24", "enforce", "end 1 stopped", "enforce"),
        Ended("expired", 31, 33, 0, None),
        ("enforce", "end 1 stopped"),
    ),
    "failed validation": Scenario(
        ("setup", "upload bad", "create", "dispatch", "validate", "settle"),
        Ended("failed", 0, 0, 0, "invalid_request"),
        ("validate", "settle"),
    ),
    "credit": Scenario(
        ("setup poor", "upload", "create 72h", "dispatch", "validate", "hold_credits", "settle", "end_run", "grant",
         "resume_funded", "dispatch"),
        COMPLETED,
        ("hold_credits", "settle", "resume_funded", "dispatch"),
    ),
    "lost run": Scenario(
        (*START, "lose_run", "reconcile"), Ended("failed", 0, 0, 0, "server_error"), ("reconcile",)
    ),
}  # fmt: skip

OTHERS = (
    "upload",
    "open_upload",
    "send_part",
    "complete_upload",
    "create",
    "cancel",
    "grant",
    "later",
    "lose_run",
    "end_run",
)
"""Steps that no platform takes by itself: customers, operators, time."""

TAKEN_AGAIN = {"job 0": "end 0 crashed", "job 1": "end 1 crashed"}
"""What the task does whose job died; every other step is simply taken again."""


NOT_DYING = ("setup", "later", "lose_run", "end_run", "grant", "job 1")
"""What is no process of ours, and the second partition's job, which is the first one's again."""
OUTSIDE = ("dispatch", "reconcile", "job")
"""Steps that do something outside database and store: they ask Airflow, or an engine."""
BEATS, BEATS_MAX = "replace progress", 2
"""A job's heartbeats are all alike, and how many there are is a matter of speed."""


def cases() -> Iterator[tuple[str, int]]:
    """Every step that dies, as scenario and place."""
    for name, scenario in SCENARIOS.items():
        for place, step in enumerate(scenario.steps):
            if step in (scenario.dying or scenario.steps) and not step.startswith(NOT_DYING):
                yield name, place


def deaths(step: str, points: list[tuple[str, int]]) -> Iterator[Kill]:
    """Before and after each point. Before a point is after the one before it, unless something happens in between."""
    for place, (label, number) in enumerate(points):
        if label.startswith(BEATS) and number > BEATS_MAX:
            continue
        if place == 0 or label.startswith("write") or step.startswith(OUTSIDE):
            yield "before", label, number
        yield "after", label, number


def points_of(bench: Bench, scenario: Scenario, place: int) -> list[tuple[str, int]]:
    """Save the state before the step, take it once, and say what it passed."""
    bench.clear()
    bench.take(*scenario.steps[:place])
    saved = bench.save()
    points = bench.take(scenario.steps[place])
    bench.restore(saved)
    return points


def outside_steps(steps: tuple[str, ...]) -> list[str]:
    """Of the steps that are left those that nobody takes by itself; a run whose tasks are still to come does not end."""
    return [
        one for one in steps if one.startswith(OTHERS) and not (one == "end_run" and "hold_credits" in steps)
    ]


def die_everywhere(bench: Bench, name: str, place: int) -> None:
    """Let a scenario's step die at each of its points in turn, and hold what each comes to."""
    scenario = SCENARIOS[name]
    step = scenario.steps[place]
    points = points_of(bench, scenario, place)
    saved = bench.save()
    assert points
    rest = outside_steps(scenario.steps[place + 1 :])
    for when, label, number in deaths(step, points):
        case = f"{name}: {step} died {when} {label} {number}"
        bench.restore(saved)
        bench.die(step, (when, label, number))
        closed = bench.closed(int(step[-1])) if step in TAKEN_AGAIN else set()
        asked = bench.asked()
        bench.take(TAKEN_AGAIN.get(step, step), *rest, "drive")
        world = bench.world
        assert ended(world.batch_id) == scenario.ends, case
        assert ended(world.values["neighbour"]) == NEIGHBOUR, case
        assert bench.broken() == [], case
        assert bench.batches() == 2, case
        again = {text[:6] for text in (bench.asked() - asked)}
        assert not again & {f"say {line:02d}" for line in closed if line >= NEIGHBOUR_LINES}, case


SAMPLE = [("completed", len(SCENARIOS["completed"].steps) - 1), ("failed validation", 4)]


@pytest.mark.parametrize(("name", "place"), SAMPLE)
def test_a_batch_outlives_a_death_while_it_ends(bench: Bench, name: str, place: int) -> None:
    """Wherever the step that ends a batch dies: one end, one charge, every line once, and the neighbour unharmed."""
    die_everywhere(bench, name, place)


@pytest.mark.deep
@pytest.mark.parametrize(("name", "place"), [one for one in cases() if one not in SAMPLE])
def test_a_batch_outlives_a_death_anywhere(bench: Bench, name: str, place: int) -> None:
    """Wherever a step dies: the end that is due, one hold, one settlement, every line once, no closed line run again."""
    die_everywhere(bench, name, place)
