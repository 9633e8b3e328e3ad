"""Whole platforms in one thread, from seeds: whatever goes wrong, in whatever order, every promise holds."""

from collections.abc import Iterator

import pytest

from tests.simulation.conftest import Live

SEEDS = range(50)
DEEP_SEEDS = range(1_000, 1_500)
AT_ONCE = 5
"""Seeds a test: enough to share them between processes, few enough for the time that a test has."""

FOUND_BEFORE: dict[int, str] = {
    1_051: "a late copy of hold_credits took a batch that had parked out of its place, and it had no run any more",
    1_162: "a late copy of wait_for_capacity did the same",
    1_200: "a late copy of collate sealed a cancelled batch while its job had its last seconds",
    1_352: "the same, and lines that a job closed after the seal were counted",
}
"""Seeds that once failed, each with the fault that it found; they are lived with the usual ones."""


def chunks(seeds: range) -> Iterator[range]:
    """The seeds, some at a time."""
    return (seeds[at : at + AT_ONCE] for at in range(0, len(seeds), AT_ONCE))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``--seeds 7`` or ``--seeds 100:300`` take the place of the usual seeds."""
    if "some_seeds" not in metafunc.fixturenames:
        return
    asked = metafunc.config.getoption("--seeds")
    if asked:
        first, _, end = asked.partition(":")
        params = list(chunks(range(int(first), int(end or int(first) + 1))))
    else:
        deep = [pytest.param(one, marks=pytest.mark.deep) for one in chunks(DEEP_SEEDS)]
        found = [range(seed, seed + 1) for seed in FOUND_BEFORE]
        params = [*chunks(SEEDS), *found, *deep]  # type: ignore[list-item]
    metafunc.parametrize("some_seeds", params, ids=lambda one: f"{one.start}-{one.stop - 1}")


def test_every_promise_holds_in_every_history(some_seeds: range, live_seed: Live) -> None:
    """Books, slots, statuses, counts and files hold after every step; healed, every batch ends and every hold is resolved."""
    for seed in some_seeds:
        live_seed(seed)


def test_one_seed_is_one_history(live_seed: Live) -> None:
    """The same seed writes the same history again, so a failure can be looked at as often as it takes."""
    assert live_seed(SEEDS[3]).digest() == live_seed(SEEDS[3]).digest()
