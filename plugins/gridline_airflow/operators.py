"""One partition as a mapped task: claim its grant, run the GPU job, give the lease back; defer while there is none.

Where the job runs is the pool's to say: as a subprocess of this task, or as an AWS Batch job for which the task defers.
"""

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
        """Claim and run; runs again, from the start, each time the trigger of grants fires."""
        self._go_on(context["run_id"])

    def execute_complete(self, context: Any, event: dict[str, Any]) -> None:
        """An AWS Batch job has ended, or must: end its attempt, and go on as after a subprocess."""
        from gridline.capacity import remote
        from gridline.lines.exits import JobExit
        from gridline_airflow.aws_triggers import end_job

        job_exit = JobExit(event["job_exit"])
        if event["ended"]:
            self.log.info(
                "AWS Batch job %s ended: %s (exit code %s, log stream %s) %s",
                event["job_id"], job_exit.name, event["exit_code"], event["log_stream"], event["why"],
            )  # fmt: skip
        else:
            self.log.warning("AWS Batch job %s has no lease any more, or waits in vain.", event["job_id"])
            end_job(event["region"], event["job_id"], why="Its lease is gone.")
        batch_id = context["run_id"]
        if remote.end(batch_id, self.partition, event["lease_id"], job_exit) == "again":
            self._go_on(batch_id)

    def _go_on(self, batch_id: str) -> None:
        from gridline.capacity import attempts, remote

        answer = "again"
        while answer == "again":
            order = attempts.begin(batch_id, self.partition)
            if order == "over":
                return
            # Without a grant there may be a job that this task, before it was cleared or died, submitted elsewhere.
            order = order or remote.begun(batch_id, self.partition)
            if order is None:
                # Deferred, it holds no pool slot, so partitions with a grant always find one.
                self.defer(trigger=GrantTrigger(batch_id, self.partition), method_name="execute")
            place = remote.place_of(order.lease_id)
            if place is None:
                answer = attempts.end(batch_id, self.partition, order.lease_id, self._run(order))
            else:
                answer = self._submit(batch_id, order, place)
            if self._killed:
                raise AirflowException(
                    "The task was stopped; its lease is given back and its results are kept."
                )

    def _submit(self, batch_id: str, order: Any, place: Any) -> Any:
        """Defer until the AWS Batch job has ended; an answer only if there is none, or the task was killed meanwhile."""
        from gridline.capacity import remote
        from gridline.lines.exits import JobExit
        from gridline_airflow.aws_batch import AwsAway, Jobs
        from gridline_airflow.aws_triggers import AwsJobTrigger, end_job

        try:
            jobs = Jobs(place.region)
            job_id = jobs.submit(order, place, batch_id=batch_id)
            self.log.info("AWS Batch job %s: %s", job_id, jobs.page(job_id))
        except AwsAway as error:
            self.log.warning("The GPU job could not be submitted to AWS Batch: %s", error)
            return remote.end(batch_id, self.partition, order.lease_id, JobExit.CRASHED)
        if self._killed:
            end_job(place.region, job_id, why="Its task was stopped.")
            return remote.end(batch_id, self.partition, order.lease_id, JobExit.STOPPED)
        # The submit may have taken long, and the triggerer's first look comes later still. What is unwanted it will see.
        remote.unwanted([order.lease_id], placing=[order.lease_id])
        trigger = AwsJobTrigger(
            batch_id=batch_id,
            partition=self.partition,
            lease_id=order.lease_id,
            job_id=job_id,
            region=place.region,
        )
        return self.defer(trigger=trigger, method_name="execute_complete")

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
