"""Qualification against the stub engine: what is asked, judged and put on record. The real engine's is in the stack."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from gridline.catalog.tables import Qualification
from gridline.db.work import unit_of_work
from gridline.operate import qualifying
from gridline.settings import Settings
from tests.gpu_jobs.conftest import start_keeper
from tests.gridline.lines.conftest import CARDS

MODEL = "tiny-chat"

pytestmark = pytest.mark.programs


@pytest.fixture
def config(
    state_dir: Path, models_folder: Path, database: Engine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    """A host whose engine keeper starts the stub engine for the tiny models."""
    monkeypatch.setattr(qualifying, "catalogue", lambda: CARDS)
    keeper = start_keeper(state_dir)
    yield Settings(state_dir=state_dir, models_dir=str(models_folder), engine_python=sys.executable)
    keeper.terminate()
    keeper.communicate(timeout=20)


def said(text: str) -> dict[str, Any]:
    """A line to which the stub answers with this text."""
    return {"messages": [{"role": "user", "content": f"Say ok !say={text}"}], "max_tokens": 8}


def recorded() -> list[Qualification]:
    """Every run on record."""
    with unit_of_work() as work:
        return list(work.session.scalars(select(Qualification).order_by(Qualification.sequence)))


def test_a_run_goes_through_the_stage_and_on_record(
    config: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The known lines are answered by the real GPU job; engine version, commit, throughput and every answer stay."""
    monkeypatch.setattr(qualifying, "CHAT_LINES", (said("It is Paris."), said("Paris")))
    outcome = qualifying.qualify(config, MODEL)
    (row,) = recorded()
    assert outcome.passed
    assert (row.model, row.commit, row.engine_version) == (MODEL, CARDS[MODEL].commit, "stub-1")
    assert row.passed
    assert row.tokens_per_second > 0
    assert [one["answer"] for one in row.details["lines"]] == ["It is Paris.", "Paris"]
    assert all(one["usage"]["completion_tokens"] for one in row.details["lines"])
    assert len(row.details["counted"]) == qualifying.SPEED_PROMPTS


def test_a_wrong_answer_does_not_pass(config: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is recorded with what was answered, and as not passed; so is one whose line the engine refused."""
    monkeypatch.setattr(qualifying, "CHAT_LINES", (said("Rome"),))
    assert not qualifying.qualify(config, MODEL).passed
    monkeypatch.setattr(qualifying, "CHAT_LINES", (said("Paris"), said("x !overlong")))
    assert not qualifying.qualify(config, MODEL).passed
    first, second = recorded()
    assert (first.passed, first.details["lines"][0]["answer"]) == (False, "Rome")
    assert second.details["lines"][1]["error"]["code"] == "context_length_exceeded"
