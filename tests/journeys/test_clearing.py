"""An operator clears tasks of batches that have ended, in the real Airflow: nothing runs, moves or changes."""

from typing import Any

import pytest

from tests.stack import Customer, Stack, chat_line, eventually, long_lines

pytestmark = [pytest.mark.stack, pytest.mark.deep, pytest.mark.timeout(900)]

TASKS = ("validate", "hold_credits", "wait_for_capacity", "infer_partition", "collate", "settle")


def ended(stack: Stack, customer: Customer, status: str) -> str:
    """A batch that has ended this way."""
    lines: list[Any] = [chat_line(n, "Say yes.", tokens=8) for n in range(2)]
    if status in {"cancelled", "expired"}:
        # Long enough to be stopped midway on a fast machine.
        lines = [*long_lines(100)]
    batch = customer.create([*lines, "no JSON"] if status == "failed" else lines)
    if status in {"cancelled", "expired"}:
        eventually(lambda: some_done(customer, batch.id), seconds=180, what="some lines are done", every=0.2)
        if status == "cancelled":
            customer.openai.batches.cancel(batch.id)
        else:
            stack.make_due(batch.id)
    assert customer.finished(batch.id, seconds=300).status == status
    return str(batch.id)


def some_done(customer: Customer, batch_id: str) -> bool:
    """Whether some lines are completed."""
    counts = customer.openai.batches.retrieve(batch_id).request_counts
    return counts is not None and counts.completed > 0


def left(stack: Stack, customer: Customer, batch_id: str) -> Any:
    """Everything that a batch left: its row, its files' bytes, attempts, leases, entries, usage."""
    batch = customer.openai.batches.retrieve(batch_id)
    files = [
        customer.openai.files.content(one).content
        for one in (batch.output_file_id, batch.error_file_id)
        if one is not None
    ]
    counted = [
        stack.rows(f"SELECT count(*) FROM {table} WHERE batch_id = %s", batch_id)
        for table in (
            "attempts",
            "leases",
            "transactions",
            "holds",
            "resolutions",
            "usage_facts",
            "batch_events",
        )
    ]
    entries = stack.rows(
        "SELECT book, amount_nanos FROM entries e JOIN transactions t ON t.id = e.transaction_id "
        "WHERE t.batch_id = %s ORDER BY e.sequence",
        batch_id,
    )
    return batch.model_dump(), files, counted, entries


@pytest.mark.parametrize("status", ["completed", "cancelled", "expired", "failed"])
def test_clearing_any_task_of_an_ended_batch_changes_nothing(stack: Stack, status: str) -> None:
    """Each task, alone and then with all after it: no GPU work, no ledger row, and the files byte for byte the same."""
    customer = stack.customer(f"cleared-{status}")
    batch_id = ended(stack, customer, status)
    with stack.airflow() as airflow:
        run = f"/api/v2/dags/batch/dagRuns/{batch_id}"

        def over() -> bool:
            return airflow.get(run).raise_for_status().json()["state"] in {"success", "failed"}

        eventually(over, seconds=90, what="the run has ended")
        before = left(stack, customer, batch_id)
        for task in TASKS:
            for downstream in (False, True) if task == "validate" else (False,):
                body = {
                    "dry_run": False, "dag_run_id": batch_id, "task_ids": [task], "only_failed": False,
                    "reset_dag_runs": True, "include_downstream": downstream,
                }  # fmt: skip
                answer = airflow.post("/api/v2/dags/batch/clearTaskInstances", json=body)
                assert answer.status_code == 200, answer.text
                eventually(over, seconds=120, what=f"the run has ended again after {task} was cleared")
                assert left(stack, customer, batch_id) == before, task
    assert "The books hold" in stack.gridline("books")
