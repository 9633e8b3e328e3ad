from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from gridline.limits import PARTITIONS_PER_BATCH_MAX

pytestmark = pytest.mark.airflow

Parse = Callable[[str], dict[str, Any]]
FOLDERS = ("dags", "bench/dags")
UPKEEP = ["prove", "reconcile", "sweep"]
IN_ORDER = ["validate", "hold_credits", "wait_for_capacity", "infer_partition", "collate", "settle"]


def of_batches(parsed: Parse, folder: str) -> list[dict[str, Any]]:
    """The folder's DAGs whose runs are batches."""
    return [dag for name, dag in parsed(folder)["dags"].items() if name not in UPKEEP]


@pytest.mark.parametrize(
    ("folder", "dag_ids"), [("dags", ["batch", *UPKEEP]), ("bench/dags", ["empty_batch"])]
)
def test_dags_import(parsed: Parse, folder: str, dag_ids: list[str]) -> None:
    """Every DAG file parses, beside our plugin and its listener, and holds the DAGs it should."""
    assert parsed(folder)["errors"] == {}
    assert sorted(parsed(folder)["dags"]) == dag_ids


@pytest.mark.parametrize(("folder", "dag_id"), [("dags", "batch"), ("bench/dags", "empty_batch")])
def test_six_tasks_in_a_row(parsed: Parse, folder: str, dag_id: str) -> None:
    """validate, hold, wait, infer, collate, settle; the bench's empty DAG has the same shape."""
    tasks = parsed(folder)["dags"][dag_id]["tasks"]
    assert sorted(tasks) == sorted(IN_ORDER)
    for before, after in pairwise(IN_ORDER):
        assert before in tasks[after]["upstream"]
    assert [name for name in IN_ORDER if tasks[name]["mapped"]] == ["infer_partition"]
    assert tasks["infer_partition"]["pool"] == "gpu_jobs"
    assert parsed(folder)["dags"][dag_id]["serialised"] == sorted(IN_ORDER)


@pytest.mark.parametrize("folder", FOLDERS)
def test_settle_is_the_only_teardown(parsed: Parse, folder: str) -> None:
    """One teardown, no setup (without a succeeded setup it would be skipped), and its success hides no failure."""
    for dag in of_batches(parsed, folder):
        assert [name for name, task in dag["tasks"].items() if task["teardown"]] == ["settle"]
        assert [name for name, task in dag["tasks"].items() if task["setup"]] == []
        assert not dag["tasks"]["settle"]["fails_run"]
        assert dag["tasks"]["settle"]["trigger_rule"] == "all_done_setup_success"


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_that_skips_the_teardown(parsed: Parse, folder: str) -> None:
    """No dagrun_timeout and no all_done rule: neither survives what it is meant for (airflow traps)."""
    for dag in parsed(folder)["dags"].values():
        assert dag["dagrun_timeout"] is None
        rules = {task["trigger_rule"] for name, task in dag["tasks"].items() if name != "settle"}
        assert rules == {"all_success"}
        assert not any(task["end_from_trigger"] for task in dag["tasks"].values())


def test_limits_are_chosen(parsed: Parse) -> None:
    """Runs and tasks at once are set on purpose, not Airflow's 16; every partition may run; nothing is scheduled."""
    dag = parsed("dags")["dags"]["batch"]
    assert dag["max_active_runs"] not in (None, 16)
    assert dag["max_active_tasks"] >= PARTITIONS_PER_BATCH_MAX
    assert dag["schedule"] is None
    assert dag["paused"] is False


def test_every_task_tries_again(parsed: Parse) -> None:
    """A dependency that is away for some minutes costs no batch."""
    tasks = parsed("dags")["dags"]["batch"]["tasks"]
    assert all(task["retries"] >= 10 for task in tasks.values())


def test_the_dag_explains_itself(parsed: Parse) -> None:
    """The operator reads each task, parking, and what may be done to a run, on the DAG's own page."""
    doc = parsed("dags")["dags"]["batch"]["doc"]
    for word in (*IN_ORDER, "parked", "the batch's id", "mark the run failed"):
        assert word in doc


def test_the_proof_is_made_every_hour(parsed: Parse) -> None:
    """Hourly, one at a time, from the first minute, and what was missed is not made up for."""
    dag = parsed("dags")["dags"]["prove"]
    assert dag["schedule"] in ("@hourly", "0 * * * *")
    assert (dag["max_active_runs"], dag["paused"], dag["catchup"]) == (1, False, False)
    assert "Red means" in dag["doc"]


@pytest.mark.parametrize("dag_id", ["reconcile", "sweep"])
def test_upkeep_by_hand_runs_when_it_is_asked(parsed: Parse, dag_id: str) -> None:
    """One task, no schedule, not paused: the operator triggers it and reads what it did."""
    dag = parsed("dags")["dags"][dag_id]
    assert (dag["schedule"], dag["max_active_runs"], dag["paused"]) == (None, 1, False)
    assert len(dag["tasks"]) == 1
    assert "The keeper does this" in dag["doc"]
