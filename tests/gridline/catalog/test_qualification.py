"""Qualification decides what is listed."""

from datetime import timedelta

from sqlalchemy import Engine

from gridline.catalog import qualification
from gridline.catalog.cards import catalogue, listed, qualified_card, record_qualification
from gridline.clock import FrozenClock
from gridline.db.work import Work, unit_of_work


def run(work: Work, model: str, *, passed: bool) -> None:
    """Record one qualification run of a model of the catalogue."""
    record_qualification(
        work,
        catalogue()[model],
        engine_version="0",
        passed=passed,
        tokens_per_second=1,
        details={"prompts": 1},
    )


def test_unqualified_models_are_not_listed(work: Work) -> None:
    """Nothing is listed before a run is on record."""
    assert listed(work) == []
    assert qualified_card(work, "smollm2-135m-instruct") is None


def test_newest_run_decides(work: Work) -> None:
    """A model is listed while its newest run passed, and no longer once one failed."""
    run(work, "smollm2-135m-instruct", passed=True)
    run(work, "all-minilm-l6-v2", passed=False)
    assert [card.id for card in listed(work)] == ["smollm2-135m-instruct"]
    assert qualified_card(work, "smollm2-135m-instruct") == catalogue()["smollm2-135m-instruct"]
    run(work, "smollm2-135m-instruct", passed=False)
    assert listed(work) == []


def test_not_offered_is_never_listed(work: Work) -> None:
    """A base for adapters stays unlisted though it is qualified."""
    run(work, "qwen3-8b", passed=True)
    assert listed(work) == []


def test_the_first_pass_is_a_models_date(database: Engine, clock: FrozenClock) -> None:
    """It stays whatever later runs say, runs that failed before it do not count, and all that is listed has one."""
    card = catalogue()["smollm2-135m-instruct"]
    for passed in (False, True, False, True):
        with unit_of_work() as work:
            run(work, card.id, passed=passed)
            if passed:
                assert (card.id, card.commit) in qualification.passed_commits(work)
        clock.advance(hours=1)
    with unit_of_work() as work:
        assert qualification.first_passed(work) == {(card.id, card.commit): clock.now() - timedelta(hours=3)}
