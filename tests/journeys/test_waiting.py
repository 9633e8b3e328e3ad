"""One GPU, six accounts: who waits says why, few wait inside Airflow, and everybody is served, each by one run."""

from typing import Any

import pytest

from tests.stack import Customer, Stack, chat_line, eventually

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]

DEFERRED_MAX = 8
WAIT_REASONS = {"gridline_capacity", "account_capacity", "model_loading"}


def waits(stack: Stack, ids: list[str]) -> dict[str, str | None]:
    """How each of these batches waits, by the platform's own word."""
    rows = stack.rows("SELECT id, waiting FROM batches WHERE id = ANY(%s) AND ended_at IS NULL", ids)
    return dict(rows)


def reason(customer: Customer, batch_id: str) -> dict[str, Any]:
    """What the batch tells its customer about the wait."""
    return dict(customer.openai.batches.retrieve(batch_id).gridline)  # type: ignore[attr-defined]


def test_ten_batches_wait_behind_one_and_all_complete(stack: Stack) -> None:
    """While a sixth account's batch has the GPU, ten others show their reason, at most 8 deferred; each is one run."""
    busy = stack.customer("wait-busy")
    others = [stack.customer(f"wait-{number}") for number in range(5)]
    long = busy.create([chat_line(n, f"Tell a story about {n} ships.", tokens=64) for n in range(64)])
    eventually(
        lambda: stack.rows("SELECT 1 FROM leases WHERE batch_id = %s AND claimed_at IS NOT NULL", long.id),
        seconds=90, what="the long batch runs",
    )  # fmt: skip
    waiting = [(one, one.create([chat_line(0, "Say yes.", tokens=4)]).id) for one in others for _ in range(2)]
    ids = [batch_id for _, batch_id in waiting]

    def all_wait() -> bool:
        found = waits(stack, ids)
        assert sum(how == "deferred" for how in found.values()) <= DEFERRED_MAX
        return len(found) == len(ids) and all(found.values())

    eventually(all_wait, seconds=120, what="all ten wait, deferred or parked")
    found = waits(stack, ids)
    assert sum(how == "deferred" for how in found.values()) <= DEFERRED_MAX
    assert sum(how == "parked" for how in found.values()) >= len(ids) - DEFERRED_MAX
    for customer, batch_id in waiting:
        told = reason(customer, batch_id)
        assert told["reason_code"] in WAIT_REASONS
        assert told["reason"]
        assert told["next_step"]
        assert isinstance(told["since"], int)
    for customer, batch_id in [(busy, long.id), *waiting]:
        assert customer.finished(batch_id, seconds=400).status == "completed"
    with stack.airflow() as airflow:
        for batch_id in [long.id, *ids]:
            pattern = {"run_id_pattern": batch_id}
            runs = airflow.get("/api/v2/dags/batch/dagRuns", params=pattern).json()["dag_runs"]
            assert [run["dag_run_id"] for run in runs] == [batch_id]
    assert "The books hold" in stack.gridline("books")
