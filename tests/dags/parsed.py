"""Parses a DAG folder as Airflow's dag-processor does and writes what the tests ask, as JSON.

Runs in a process and a home of its own: Airflow takes its configuration when it is imported.
"""

import json
import sys
from pathlib import Path
from typing import Any


def described(folder: str) -> dict[str, Any]:
    """Import errors, and of each DAG its settings, tasks and edges."""
    from airflow.dag_processing.dagbag import DagBag
    from airflow.serialization.serialized_objects import DagSerialization

    bag = DagBag(folder)
    found: dict[str, Any] = {"errors": dict(bag.import_errors), "dags": {}}
    for dag in bag.dags.values():
        again = DagSerialization.from_dict(DagSerialization.to_dict(dag))
        found["dags"][dag.dag_id] = {
            "doc": dag.doc_md,
            "schedule": dag.schedule,
            "max_active_runs": dag.max_active_runs,
            "max_active_tasks": dag.max_active_tasks,
            "dagrun_timeout": str(dag.dagrun_timeout) if dag.dagrun_timeout else None,
            "paused": dag.is_paused_upon_creation,
            "catchup": dag.catchup,
            "serialised": sorted(again.task_ids),
            "tasks": {task.task_id: _task(task) for task in dag.tasks},
        }
    return found


def _task(task: Any) -> dict[str, Any]:
    partial = getattr(task, "partial_kwargs", {})
    return {
        "upstream": sorted(task.upstream_task_ids),
        "mapped": bool(partial) or type(task).__name__.endswith("MappedOperator"),
        "setup": task.is_setup,
        "teardown": task.is_teardown,
        "fails_run": getattr(task, "on_failure_fail_dagrun", False),
        "trigger_rule": str(getattr(task.trigger_rule, "value", task.trigger_rule)),
        "pool": task.pool,
        "retries": task.retries,
        "from_trigger": bool(getattr(task, "start_from_trigger", False)),
        "end_from_trigger": bool(getattr(task, "end_from_trigger", False)),
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(described(sys.argv[1])))
