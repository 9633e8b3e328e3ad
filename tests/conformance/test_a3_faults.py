"""Rows 43, 48 and 53: what the customer sees of a batch while the service breaks, from the operator's side."""

import signal
from typing import Any

from tests.conformance.batch_service import Service
from tests.conformance.watching import check_way, failures
from tests.stack import Stack, command_of

LINES = 32
AIRFLOW = ("airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")


def some_done(service: Service, batch_id: str) -> list[dict[str, Any]]:
    """The looks at the batch until a fifth of its lines are done."""
    seen = []
    for batch in service.polls(batch_id):
        seen.append(batch)
        if batch["request_counts"]["completed"] >= LINES // 5:
            break
    assert seen[-1]["status"] == "in_progress", seen[-1]
    return seen


def test_case_43_tries_inside_are_invisible(operator: Stack, service: Service) -> None:
    """An engine that dies midway is not seen in the results: no count goes back, and each line has one, from one try."""
    lines = service.story_lines(LINES)
    batch_id = service.created(lines)["id"]
    seen = some_done(service, batch_id)
    engines = [one for one in operator.processes() if service.chat in command_of(one)]
    assert engines
    for one in engines:
        one.send_signal(signal.SIGKILL)
    seen += service.polls(batch_id, seconds=400)
    check_way(seen)
    for which in ("completed", "failed"):
        counts = [one["request_counts"][which] for one in seen]
        assert counts == sorted(counts), "a count went back"
    ended = service.ended(seen[-1], lines)
    assert ended.batch["status"] == "completed"
    assert not ended.err


def test_case_48_an_expired_batch_delivers_what_is_done(operator: Stack, service: Service) -> None:
    """Past its deadline a batch ends expired: what is done is delivered and charged, the rest is batch_expired and free."""
    lines = service.lines_to_stop(200)
    batch_id = service.created(lines)["id"]
    some_done(service, batch_id)
    operator.make_due(batch_id)
    ended = service.ended(service.finished(batch_id), lines)
    batch = ended.batch
    assert batch["status"] == "expired"
    assert batch["expired_at"] >= batch["expires_at"]
    assert ended.out
    assert set(failures(ended).values()) == {"batch_expired"}
    assert all(one["response"] is None for one in ended.err)
    assert batch["request_counts"]["failed"] == len(ended.err)
    facts = service.facts(batch)
    assert 0 < float(facts["cost"]) < float(facts["hold"])


def test_case_53_a_create_without_airflow_runs_later(operator: Stack, service: Service) -> None:
    """With Airflow stopped the create succeeds and says `starting`; the batch runs once Airflow is back, once."""
    with operator.supervisor() as supervisor:
        for name in AIRFLOW:
            supervisor.stopProcess(f"parts:{name}")
        try:
            batch = service.created([service.chat_line("0")])
            assert batch["status"] == "validating"
            assert service.facts(batch)["reason_code"] == "starting"
        finally:
            for name in AIRFLOW:
                supervisor.startProcess(f"parts:{name}", False)
    assert service.finished(batch["id"])["status"] == "completed"
    assert len(operator.rows("SELECT 1 FROM resolutions WHERE batch_id = %s", batch["id"])) == 1
