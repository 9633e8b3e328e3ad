"""Imports what tasks need once, in the scheduler, before LocalExecutor forks its workers. Knows no batch.

A forked worker that finds everything imported starts a task in about 0.2 s, a cold one needs one to two seconds.
A listener is only a hint: a module that cannot be imported here is imported, or fails, in the task.
"""

import importlib
import logging
import sys
from typing import Any

from airflow.listeners import hookimpl  # noqa: TID253  # an Airflow room

log = logging.getLogger(__name__)

AIRFLOW_MODULES = (
    "airflow.sdk.execution_time.task_runner",
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.macros",
    "airflow.sdk.api.client",
    "airflow.sdk.definitions._internal.templater",
    "airflow.dag_processing.dagbag",
    "airflow.dag_processing.bundles.manager",
    "airflow.providers.standard.decorators.python",
    "airflow.providers.standard.operators.python",
)
OUR_MODULES = (
    "gridline_airflow.sensors",
    "gridline_airflow.operators",
    "gridline.storage",
    "gridline.db.every_table",
    "psycopg",
    # pyarrow imports these two by itself at the first table it makes or reads.
    "pandas",
    "pyarrow.dataset",
    "sqlalchemy.dialects.postgresql.psycopg",
    "gridline.batches.validating",
    "gridline.batches.holding",
    "gridline.batches.finishing",
    "gridline.capacity.waiting",
    "gridline.capacity.attempts",
    "gridline.capacity.remote",
    "gridline.lines.checking",
    "gridline.lines.collating",
)


class Preload:
    """Airflow calls ``on_starting`` in each component; only the scheduler has workers to fork."""

    @hookimpl
    def on_starting(self, component: Any) -> None:
        """Import every module of the lists above; what fails is logged and left to the task."""
        # The job's type is not set yet at this moment, so the command line tells which component this is.
        if type(component).__name__ != "Job" or "scheduler" not in sys.argv:
            return
        for name in (*AIRFLOW_MODULES, *OUR_MODULES):
            try:
                importlib.import_module(name)
            except Exception:  # whatever a module raises, the scheduler must start
                log.exception("Could not preload %s; tasks import it themselves.", name)
