"""Duties of the keeper that an operator may start by hand (the DAGs ``reconcile`` and ``sweep``): the same functions.

Safe beside a keeper that does the same at the same time: each looks again under the batch's lock before it acts.
"""

from collections.abc import Callable

from gridline.keeper import forgetting, orphans, retention, uploads
from gridline.keeper import reconcile as reconciling
from gridline.keeper.airflow import Airflow
from gridline.settings import settings

SWEEPS: dict[str, Callable[[], int]] = {
    "uploads": uploads.sweep,
    "retention": retention.retain,
    "orphans": orphans.sweep,
    "traces of creates": forgetting.forget,
}


def reconcile() -> int:
    """Look once at every batch that should have a live run; how many were ended or started again.

    Raises:
        SettingInvalid: this machine does not know the password of Airflow's service user; the keeper's does.
    """
    airflow = Airflow.of(settings())
    try:
        return reconciling.reconcile(airflow)
    finally:
        airflow.close()


def sweep() -> dict[str, int]:
    """Sweep once what is due; what, and how much of it."""
    return {name: step() for name, step in SWEEPS.items()}
