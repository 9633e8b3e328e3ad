"""One partition as a mapped task: claim its grant, run the GPU job, give the lease back; defer while there is none."""

from typing import Any

from airflow.sdk import BaseOperator  # noqa: TID253  # an Airflow room
from airflow.sdk.exceptions import AirflowException  # noqa: TID253

from gridline_airflow.links import BatchPage
from gridline_airflow.triggers import GrantTrigger


class InferPartition(BaseOperator):
    """Runs attempts at one partition until it is over: done, given up, or its batch cancelled or ended.

    An attempt is the domain's, not Airflow's try: clearing or retrying this task adds none.
    """

    operator_extra_links = (BatchPage(),)

    def __init__(self, *, partition: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.partition = partition
        self._job: Any = None
        self._killed = False

    def execute(self, context: Any, event: Any = None) -> None:  # noqa: ARG002  # the event only woke us
        """Claim and run; runs again, from the start, each time the trigger fires."""
        from gridline.capacity import attempts

        batch_id = context["run_id"]
        answer = "again"
        while answer == "again":
            order = attempts.begin(batch_id, self.partition)
            if order == "over":
                return
            if order is None:
                # Deferred, it holds no pool slot, so partitions with a grant always find one.
                self.defer(trigger=GrantTrigger(batch_id, self.partition), method_name="execute")
            answer = attempts.end(batch_id, self.partition, order.lease_id, self._run(order))
            if self._killed:
                raise AirflowException(
                    "The task was stopped; its lease is given back and its results are kept."
                )

    def _run(self, order: Any) -> Any:
        from gridline.capacity import attempts
        from gridline.lines.exits import JobExit
        from gridline_airflow.jobs import JobProcess

        try:
            self._job = JobProcess(order)
        except OSError:
            self.log.exception("The GPU job could not be started.")
            return JobExit.CRASHED
        return self._job.follow(self.log, wanted=lambda: attempts.may_go_on(order.lease_id))

    def on_kill(self) -> None:
        """Stop the job when an operator ends the task or this machine stops; called inside a signal handler."""
        self._killed = True
        if self._job is not None:
            self._job.stop()
