"""Starts and resumes runs in Airflow from the outbox ``run_requests``, in turns between accounts.

A request is done once Airflow accepted it; until then it waits, and the API that wrote it is unaffected.
"""

import logging
from datetime import datetime, timedelta

from sqlalchemy import select, text

from gridline.batches.reasons import ReasonCode, sentence
from gridline.batches.states import TERMINAL, Status, Waiting
from gridline.batches.tables import Batch, RunRequest
from gridline.capacity import leases
from gridline.db.work import Work, unit_of_work
from gridline.keeper.airflow import Airflow
from gridline.keeper.errors import AirflowAway, RunNotFound
from gridline.settings import settings
from gridline.telemetry import metrics

log = logging.getLogger(__name__)

PASS_MAX = 50
"""Requests a pass: the next pass comes at once, but other accounts' new requests are seen in between."""
FAILURES_IN_A_ROW_MAX = 2
"""Then Airflow is taken to be away and the pass ends; one request that fails by itself holds up nobody."""
STILL_RUNNING_SECONDS = 1
BACK_OFF_SECONDS_MAX = 30

_DUE = text("""
SELECT sequence FROM (
    SELECT sequence, row_number() OVER (PARTITION BY account_id ORDER BY sequence) AS turn
    FROM run_requests WHERE done_at IS NULL AND (not_before <= :now OR not_before > :never)
) due ORDER BY turn, sequence LIMIT :most
""")


def dispatch(airflow: Airflow) -> int:
    """Ask Airflow for every run that is due; how many it accepted."""
    with unit_of_work() as work:
        due = work.session.scalars(_DUE, {"now": work.now, "never": _never(work), "most": PASS_MAX}).all()
    accepted = failures = 0
    for sequence in due:
        try:
            accepted += _handle(airflow, sequence)
        except AirflowAway as away:
            log.warning("A run waits for Airflow: %s", away.message)
            _postpone(sequence)
            failures += 1
            if failures == FAILURES_IN_A_ROW_MAX:
                break
        else:
            failures = 0
    return accepted


def _never(work: Work) -> datetime:
    """Nothing is put off for longer: a time beyond this was written before the clock was set back, and is due."""
    return work.now + timedelta(seconds=2 * BACK_OFF_SECONDS_MAX)


def _handle(airflow: Airflow, sequence: int) -> bool:
    """One request, its row locked meanwhile so that no second keeper asks at the same time."""
    with unit_of_work() as work:
        request = _locked(work, sequence)
        if request is None:
            return False
        batch = work.session.get_one(Batch, request.batch_id)
        ended = batch.status in TERMINAL or batch.status == Status.CANCELLING
        if not ended and request.kind == "start":
            airflow.start_run(batch.id, batch.created_at, note=run_note(batch.id))
        elif not ended and not _resume(airflow, work, request, batch):
            request.not_before = work.now + timedelta(seconds=STILL_RUNNING_SECONDS)
            metrics.RUN_REQUESTS.labels(request.kind, "later").inc()
            return False
        request.done_at = work.now
        metrics.RUN_REQUESTS.labels(request.kind, "done").inc()
        return True


def _resume(airflow: Airflow, work: Work, request: RunRequest, batch: Batch) -> bool:
    """Let the batch's run go on. False while the run that parked it has not quite ended.

    Of a batch that is no longer parked the live run goes on already: the answer to an earlier try was lost.
    """
    run = airflow.get_run(batch.id)
    if run is not None and not run.ended:
        return batch.waiting != Waiting.PARKED
    try:
        if run is not None:
            airflow.clear_from(batch.id, request.from_task or "validate")
    except RunNotFound:
        run = None
    if run is None:
        # Someone deleted the run: a new one finds what stands and comes to the same task.
        airflow.start_run(batch.id, batch.created_at, note=run_note(batch.id))
    leases.start_claim_clock(work, batch.id)
    return True


def run_note(batch_id: str) -> str:
    """The note on a run, as Markdown: the way to the batch's page."""
    return f"[Batch page]({settings().batch_page(batch_id)})"


def parked_note(batch_id: str, code: str | None, operators_note: str | None) -> str:
    """The note on a parked batch's run: also why it has ended."""
    if code is None:
        return run_note(batch_id)
    why = sentence(ReasonCode(code), operators_note)
    return f"**Parked** ({code}): {why} This run goes on by itself. {run_note(batch_id)}"


def _locked(work: Work, sequence: int) -> RunRequest | None:
    statement = select(RunRequest).where(RunRequest.sequence == sequence, RunRequest.done_at.is_(None))
    return work.session.scalars(statement.with_for_update(skip_locked=True)).one_or_none()


def _postpone(sequence: int) -> None:
    with unit_of_work() as work:
        request = _locked(work, sequence)
        if request is None:
            return
        request.tries += 1
        wait = min(2 ** min(request.tries - 1, 10), BACK_OFF_SECONDS_MAX)
        request.not_before = work.now + timedelta(seconds=wait)
        metrics.RUN_REQUESTS.labels(request.kind, "later").inc()
