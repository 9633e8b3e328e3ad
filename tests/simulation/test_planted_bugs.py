"""The simulation against bugs that are planted on purpose: what it cannot find it does not watch over."""

import re

import pytest

from tests.simulation.bugs import BUGS, Bug
from tests.simulation.conftest import Live
from tests.simulation.history import Violation

SEEDS_MAX = 40

pytestmark = [pytest.mark.trial, pytest.mark.timeout(600)]


def first_find(live_seed: Live) -> str:
    """What the first seed that fails says last; empty when none does."""
    for seed in range(SEEDS_MAX):
        try:
            live_seed(seed)
        except Violation as found:
            return str(found).splitlines()[-1]
    return ""


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_planted_bug_is_found(bug: Bug, live_seed: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bug is found within forty seeds, and by the promise that it breaks."""
    bug.plant(monkeypatch)
    assert re.search(bug.found, first_find(live_seed) or "nothing was found")
