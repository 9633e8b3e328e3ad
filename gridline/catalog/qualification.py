"""Qualification runs on record: a model is listed only at a commit whose newest run passed."""

from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import distinct_on

from gridline.catalog.tables import Qualification
from gridline.db.work import Work


def record(
    work: Work,
    *,
    model: str,
    commit: str,
    engine_version: str,
    passed: bool,
    tokens_per_second: int,
    details: dict[str, Any],
) -> None:
    """Add one run; rows are never changed."""
    row = Qualification(
        model=model,
        commit=commit,
        engine_version=engine_version,
        passed=passed,
        tokens_per_second=tokens_per_second,
        details=details,
        at=work.now,
    )
    work.session.add(row)
    work.session.flush()


def withdraw(work: Work, *, model: str, commit: str, why: str) -> bool:
    """Add a run that failed for this reason, on the engine of the newest one. False when that did not pass either."""
    newest = work.session.scalars(
        select(Qualification)
        .where(Qualification.model == model, Qualification.commit == commit)
        .order_by(Qualification.sequence.desc())
        .limit(1)
    ).one_or_none()
    if newest is None or not newest.passed:
        return False
    record(
        work,
        model=model,
        commit=commit,
        engine_version=newest.engine_version,
        passed=False,
        tokens_per_second=0,
        details={"withdrawn": why},
    )
    return True


def passed_commits(work: Work) -> set[tuple[str, str]]:
    """(model, commit) of every pair whose newest run passed."""
    newest = (
        select(Qualification.model, Qualification.commit, Qualification.passed)
        .ext(distinct_on(Qualification.model, Qualification.commit))
        .order_by(Qualification.model, Qualification.commit, Qualification.sequence.desc())
    )
    return {(model, commit) for model, commit, passed in work.session.execute(newest) if passed}


def first_passed(work: Work) -> dict[tuple[str, str], datetime]:
    """When each (model, commit) first passed. Asked after ``passed_commits`` it has every pair of it."""
    first = (
        select(Qualification.model, Qualification.commit, func.min(Qualification.at))
        .where(Qualification.passed)
        .group_by(Qualification.model, Qualification.commit)
    )
    return {(model, commit): at for model, commit, at in work.session.execute(first)}
