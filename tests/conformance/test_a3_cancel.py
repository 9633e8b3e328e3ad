"""Rows 47 to 55: cancelling keeps what is done, never goes back, and leaves what is needed to go on."""

import random
import secrets
import threading
from contextlib import closing
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.conformance.batch_service import ENDED, Ended, Secret, Service
from tests.conformance.watching import check_way, failures
from tests.stack import Stack, eventually

TOO_LONG = [{"role": "user", "content": "word " * 9_000}]
CANCEL_SECONDS = 120
RACES = 4
POLL_20_HZ = 0.05


def cancel(service: Service, batch_id: str) -> httpx.Response:
    """Ask for the batch's end."""
    return service.http.post(f"/batches/{batch_id}/cancel")


@pytest.fixture(scope="module")
def stopped(service: Service) -> Ended:
    """A batch of 200 lines, one of them over the context, cancelled when 20 were completed."""
    lines = service.lines_to_stop(200)
    lines[3] = service.chat_line("3", messages=TOO_LONG)
    batch_id = service.created(lines)["id"]
    seen = []
    for batch in service.polls(batch_id, seconds=300):
        seen.append(batch)
        if batch["request_counts"]["completed"] >= 20:
            break
    answer = cancel(service, batch_id)
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "cancelling"
    seen += [answer.json(), *service.polls(batch_id, seconds=CANCEL_SECONDS)]
    check_way(seen)
    return service.ended(seen[-1], lines)


def race(service: Service, after: float, **body: Any) -> tuple[Ended | None, list[dict[str, Any]]]:
    """A 50-line batch cancelled this many seconds after its creation; and every look at it, 20 a second."""
    lines = [service.chat_line(str(number), **body) for number in range(50)]
    batch_id = service.created(lines)["id"]
    answers: list[httpx.Response] = []
    timer = threading.Timer(after, lambda: answers.append(cancel(service, batch_id)))
    timer.start()
    try:
        seen = list(service.polls(batch_id, seconds=CANCEL_SECONDS + after, every=POLL_20_HZ))
    finally:
        timer.join()
    assert answers[0].status_code in {200, 409}, answers[0].text
    seen.append(service.batch(batch_id))
    counts = seen[-1]["request_counts"]
    if seen[-1]["status"] == "failed":
        return None, seen
    if seen[-1]["in_progress_at"] is None and counts["total"] == 0:
        # Cancelled before its lines were read: nothing is known of them, so there are no files.
        assert (seen[-1]["output_file_id"], seen[-1]["error_file_id"]) == (None, None)
        return None, seen
    return service.ended(seen[-1], lines), seen


def test_case_47_shapes_of_error_lines(stopped: Ended) -> None:
    """A refused line has its response and no error, one that never ran has an error and no response."""
    by_id = {one["custom_id"]: one for one in stopped.err}
    refused = by_id.pop("3")
    assert refused["error"] is None
    assert refused["response"]["status_code"] == 400
    assert refused["response"]["request_id"]
    error = refused["response"]["body"]["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["code"] == "context_length_exceeded"
    for one in by_id.values():
        assert one["response"] is None
        assert one["error"].keys() == {"code", "message"}
        assert one["error"]["code"] == "batch_cancelled"
    assert by_id, "no line was cancelled"
    lines = stopped.out + stopped.err
    assert all(one.keys() == {"id", "custom_id", "response", "error"} for one in lines)
    assert len({one["id"] for one in lines}) == 200
    assert all(one["id"].startswith("batch_req_") for one in lines)


def test_case_49_cancel_keeps_what_is_done(service: Service, stopped: Ended) -> None:
    """Cancelled at 20 of 200: at least those 20 are delivered and charged, the rest is batch_cancelled and free."""
    batch = stopped.batch
    assert batch["status"] == "cancelled"
    assert batch["cancelled_at"] - batch["cancelling_at"] <= CANCEL_SECONDS
    assert 20 <= len(stopped.out) < 199
    codes = failures(stopped)
    assert codes.pop("3") == "context_length_exceeded"
    assert set(codes.values()) == {"batch_cancelled"}
    counts = batch["request_counts"]
    if "cancelled" in counts:
        assert (counts["failed"], counts["cancelled"]) == (1, len(codes))
    assert batch["usage"]["output_tokens"] > 0
    facts = service.facts(batch)
    if facts:
        assert 0 < float(facts["cost"]) < float(facts["hold"])


def test_case_50_cancels_at_any_moment(service: Service) -> None:
    """Cancelled at random moments a batch ends within 2 minutes, cancelled or completed, and counts fit its files."""
    ends = []
    for number in range(RACES):
        _, seen = race(service, random.uniform(number, number + 2), max_tokens=4)
        check_way(seen)
        ends.append(seen[-1]["status"])
    assert set(ends) <= {"cancelled", "completed"}, ends
    assert "cancelled" in ends


def test_case_51_statuses_never_go_back(service: Service) -> None:
    """A batch that fails while it is cancelled ends as one of both and stays so, whatever is asked afterwards."""
    ends = set()
    for after in (0.0, 0.4, 3.0):
        _, seen = race(service, after, n=0)
        check_way(seen)
        batch = seen[-1]
        ends.add(batch["status"])
        answer = cancel(service, batch["id"])
        assert answer.status_code == (200 if batch["status"] == "cancelled" else 409), answer.text
        assert service.batch(batch["id"]) == batch
    assert ends <= {"cancelled", "failed"}
    assert "failed" in ends


def test_case_52_files_belong_to_the_account(operator: Stack, service: Service) -> None:
    """Whichever token of an account creates, cancels or polls, every one of them reads the result files."""
    name = f"conformance-tokens-{secrets.token_hex(4)}"
    tokens = [operator.customer(name).token, operator.gridline("ops", "token", name).strip()]
    counting = [{"role": "user", "content": "Count from one to one hundred, in words."}]
    creator, canceller = (replace(service, token=Secret(token)) for token in tokens)
    with closing(creator.http), closing(canceller.http):
        lines = [creator.chat_line(str(number), max_tokens=200, messages=counting) for number in range(100)]
        batch_id = creator.created(lines)["id"]
        next(one for one in creator.polls(batch_id) if one["status"] != "validating")
        assert cancel(canceller, batch_id).status_code == 200
        batch = canceller.finished(batch_id)
        first, second = (one.ended(batch, lines) for one in (creator, canceller))
        assert first == second
        assert first.err


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_case_54_clearing_an_ended_run_changes_nothing(
    operator: Stack, service: Service, status: str
) -> None:
    """An ended batch whose run is cleared and runs again costs no GPU, moves no money and keeps its files."""
    lines = 2 if status == "completed" else 40
    batch_id = service.created([service.chat_line(str(number)) for number in range(lines)])["id"]
    if status == "cancelled":
        next(one for one in service.polls(batch_id) if one["status"] != "validating")
        cancel(service, batch_id)
    before = service.finished(batch_id)
    assert before["status"] == status

    def left() -> Any:
        names = ("output_file_id", "error_file_id")
        files = [service.content(before[name]) for name in names]
        attempts = operator.rows("SELECT count(*) FROM attempts WHERE batch_id = %s", batch_id)
        entries = operator.rows("SELECT count(*) FROM transactions WHERE batch_id = %s", batch_id)
        return files, attempts, entries

    with operator.airflow() as airflow:
        run = f"/api/v2/dags/batch/dagRuns/{batch_id}"

        def over() -> bool:
            return airflow.get(run).raise_for_status().json()["state"] in {"success", "failed"}

        eventually(over, seconds=60, what="the run has ended")
        found = left()
        cleared = airflow.post(f"{run}/clear", json={"dry_run": False, "only_failed": False})
        assert cleared.status_code == 200, cleared.text
        eventually(lambda: not over(), seconds=60, what="the run goes again", every=0.05)
        eventually(over, seconds=120, what="the run has ended again")
    assert service.batch(batch_id) == before
    assert left() == found


def test_case_55_what_is_not_done_can_be_sent_again(service: Service) -> None:
    """From input and error file alone a second file can be made of what is not done; together they hold every id."""
    lines = [service.chat_line(f"r{number}", max_tokens=3) for number in range(40)]
    batch_id = service.created(lines)["id"]
    for batch in service.polls(batch_id):
        if batch["request_counts"]["total"] and batch["status"] not in ENDED:
            cancel(service, batch_id)
            break
    first = service.ended(service.finished(batch_id), lines)
    missing = {one["custom_id"] for one in first.err}
    assert missing
    second = service.run([one for one in lines if one["custom_id"] in missing], seconds=200)
    assert second.batch["status"] == "completed"
    done = [one["custom_id"] for one in first.out + second.out]
    assert sorted(done) == sorted(one["custom_id"] for one in lines)
