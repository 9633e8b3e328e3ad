"""The wait for a GPU inside Airflow: look once, go on, defer, or leave the queue to the database. No capacity rules."""

from typing import Any

from airflow.sdk import BaseSensorOperator  # noqa: TID253  # an Airflow room
from airflow.sdk.exceptions import AirflowSkipException  # noqa: TID253

from gridline_airflow.links import BatchPage
from gridline_airflow.triggers import GrantTrigger


class WaitForCapacity(BaseSensorOperator):
    """Goes on once the run's batch has a grant.

    A granted batch goes on without deferring. Few runs wait here, on one shared stream; the batches of all others
    are parked: the sensor skips, the run ends, and the keeper resumes it from this task when there is a grant.
    """

    operator_extra_links = (BatchPage(),)

    def execute(self, context: Any, event: Any = None) -> None:  # noqa: ARG002  # the event only woke us
        """Look for the grant; runs again, from the start, each time the trigger fires."""
        from gridline.capacity import waiting

        batch_id = context["run_id"]
        answer = waiting.look_for_grant(batch_id)
        if answer == "deferred":
            # No timeout: the batch's own bounds end the wait, and the stream says so.
            self.defer(trigger=GrantTrigger(batch_id), method_name="execute")
        if answer != "granted":
            raise AirflowSkipException(f"The batch is {answer}: nothing more to do in this run for now.")
