"""AWS Batch as GPU jobs need it: one job a lease, found again by its name. Knows no batch's rules and no database.

All calls go through the amazon provider's hook, so its ways of finding a region and credentials are AWS's own, from the
environment or the machine's role: the object store's are found the same way.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from gridline.capacity.pools import AwsBatch
from gridline.clock import SystemClock, unix
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder

PLACING = frozenset({"SUBMITTED", "PENDING", "RUNNABLE", "STARTING"})
"""There is no machine yet, or it still fetches the image: the job cannot tell how it does."""
ENDED = frozenset({"SUCCEEDED", "FAILED"})
DESCRIBED_AT_ONCE = 100
ORDER_CHARS_MAX = 6_000
"""ECS takes 8,192 characters of overrides for a task."""
LATE_SECONDS = 300
"""A job stops by itself at its batch's deadline; AWS ends one that did not, so much later."""
_SHORTEST_TIMEOUT = 60
_PATIENCE = {
    "connect_timeout": 5,
    "read_timeout": 15,
    "retries": {"total_max_attempts": 3, "mode": "standard"},
}


class AwsAway(Exception):
    """Raised when AWS Batch does not answer, or refuses the call; its text is AWS's own."""


@dataclass(frozen=True)
class AwsJob:
    """One job as AWS describes it."""

    status: str
    exit_code: int | None
    """None: it has none, because it runs, never ran, or its machine went away under it."""
    why: str
    log_stream: str

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.status in ENDED

    @property
    def job_exit(self) -> JobExit:
        """How an ended job ended."""
        if self.exit_code is None:
            return JobExit.DONE if self.status == "SUCCEEDED" else JobExit.CRASHED
        return JobExit.of(self.exit_code)


class Jobs:
    """The jobs of one region; an empty one is AWS's default. Not for two threads at once."""

    def __init__(self, region: str) -> None:
        from airflow.providers.amazon.aws.hooks.batch_client import BatchClientHook

        # Without a connection of Airflow's: looking one up asks Airflow's API, which a triggerer's thread must not.
        self._hook = BatchClientHook(aws_conn_id=None, region_name=region or None, config=_PATIENCE)

    @property
    def _client(self) -> Any:
        """Made at the first call, since it may fail as a call does; the provider's type knows few of its arguments."""
        return self._hook.client

    def submit(self, order: JobOrder, place: AwsBatch, *, batch_id: str) -> str:
        """The id of the lease's job: the one that was submitted before, whatever became of it, or a new one.

        Raises:
            AwsAway: the job is not known to be there. It may be all the same, if only the answer was lost.
        """
        name = job_name(order.lease_id)
        with _aws():
            found = self._named(name, place.job_queue)
            if found is not None:
                return found
            answer = self._client.submit_job(
                jobName=name,
                jobQueue=place.job_queue,
                jobDefinition=place.job_definition,
                containerOverrides={"command": ["python", "-m", "gpu_jobs.alone", short(order).to_json()]},
                # A further attempt is the domain's to give, under another lease.
                retryStrategy={"attempts": 1},
                timeout={"attemptDurationSeconds": _seconds_left(order)},
                tags={"gridline-batch": batch_id},
            )
            return str(answer["jobId"])

    def look(self, job_ids: Collection[str]) -> dict[str, AwsJob]:
        """Those of the jobs that AWS knows, by id.

        Raises:
            AwsAway: it does not say.
        """
        wanted = sorted(job_ids)
        found: dict[str, AwsJob] = {}
        with _aws():
            for start in range(0, len(wanted), DESCRIBED_AT_ONCE):
                some = wanted[start : start + DESCRIBED_AT_ONCE]
                for stated in self._client.describe_jobs(jobs=some)["jobs"]:
                    found[str(stated["jobId"])] = _read(stated)
        return found

    def terminate(self, job_id: str, why: str) -> None:
        """End a job wherever it is: one that runs gets SIGTERM, and 30 s later SIGKILL. One that has ended stays so.

        Raises:
            AwsAway: nobody heard it.
        """
        with _aws():
            self._client.terminate_job(jobId=job_id, reason=why)

    def page(self, job_id: str) -> str:
        """Address of the job in AWS's console."""
        from airflow.providers.amazon.aws.links.batch import BatchJobDetailsLink

        link: str = BatchJobDetailsLink().format_link(
            region_name=self._hook.conn_region_name,
            aws_domain=BatchJobDetailsLink.get_aws_domain(self._hook.conn_partition),
            job_id=job_id,
        )
        return link

    def _named(self, name: str, queue: str) -> str | None:
        """The job of that name that says the most: one that is not over, else one that succeeded, else any."""
        pages = self._client.get_paginator("list_jobs").paginate(
            jobQueue=queue, filters=[{"name": "JOB_NAME", "values": [name]}]
        )
        # The filter does not look at upper and lower case.
        mine = [one for page in pages for one in page["jobSummaryList"] if one["jobName"] == name]
        mine.sort(
            key=lambda one: ("SUCCEEDED", "FAILED").index(one["status"]) if one["status"] in ENDED else -1
        )
        return str(mine[0]["jobId"]) if mine else None


def job_name(lease_id: str) -> str:
    """The name of a lease's job: whoever submits it again finds it."""
    return f"gridline-{lease_id}"


def short(order: JobOrder) -> JobOrder:
    """The order within AWS's bound, without the oldest of many earlier attempts: their lines are then run again.

    That costs time and no customer anything: of each line one result counts.
    """
    while order.earlier_prefixes and len(order.to_json()) > ORDER_CHARS_MAX:
        order = replace(order, earlier_prefixes=order.earlier_prefixes[1:])
    return order


def _seconds_left(order: JobOrder) -> int:
    left = (order.deadline_unix or 0) - unix(SystemClock().now())
    return max(_SHORTEST_TIMEOUT, left + LATE_SECONDS)


def _read(stated: dict[str, Any]) -> AwsJob:
    container = stated.get("container", {})
    return AwsJob(
        status=str(stated["status"]),
        exit_code=container.get("exitCode"),
        why=str(stated.get("statusReason") or container.get("reason") or ""),
        log_stream=str(container.get("logStreamName") or ""),
    )


@contextmanager
def _aws() -> Iterator[None]:
    """Whatever botocore raises, as one error of ours."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise AwsAway(f"{type(error).__name__}: {error}") from error
