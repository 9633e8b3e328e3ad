"""Addresses of a batch's page in the dashboard, for the run's tab, its note and its tasks. Knows no domain."""

from typing import Any

from airflow.sdk import BaseOperatorLink  # noqa: TID253  # an Airflow room

from gridline.settings import settings


def batch_page(batch_id: str) -> str:
    """The batch's page in the dashboard; a run's id is its batch's id."""
    return settings().batch_page(batch_id)


def batch_tab() -> dict[str, Any]:
    """The tab "Batch" on a run's page: Airflow puts the run's id, escaped, where the placeholder stands."""
    return {
        "name": "Batch",
        "href": batch_page("{RUN_ID}"),
        "destination": "dag_run",
        "url_route": "gridline-batch",
    }


class BatchPage(BaseOperatorLink):
    """The button "Batch page" on a task: waits, progress, results and cost as the customer sees them."""

    name = "Batch page"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002  # Airflow's signature
        """The address of the page of the batch whose run this task belongs to."""
        return batch_page(ti_key.run_id)
