"""AWS Batch for the tests: moto on loopback, with jobs that wait until a test says what becomes of them."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from gridline.capacity.allocator import allocate
from tests.gridline.capacity.yard import Yard

SOON = 20.0
ACCOUNT = "123456789012"
"""Of everybody, as moto has it."""
REGION = "eu-central-1"
QUEUE = "gpus"
DEFINITION = "gridline-gpu"


@dataclass
class World:
    """A yard whose pool runs its jobs on AWS Batch, and our modules that see to it."""

    yard: Yard
    aws: "Aws"
    rooms: SimpleNamespace

    def granted(self) -> str:
        """A batch whose partition has its grant."""
        made = self.yard.batch(self.yard.account("a"))
        allocate()
        return made

    def task(self) -> Any:
        """The mapped task of the batch's partition, as a worker makes it anew each time."""
        return self.rooms.operators.InferPartition(task_id="infer_partition", partition=0)

    def deferred(self, call: Callable[..., None], *arguments: Any) -> Any:
        """The trigger for which a task defers, taken apart and made again as Airflow does."""
        with pytest.raises(self.rooms.exceptions.TaskDeferred) as deferred:
            call(*arguments)
        trigger = deferred.value.trigger
        path, given = trigger.serialize()
        assert path == f"{type(trigger).__module__}.{type(trigger).__name__}"
        assert json.loads(json.dumps(given)) == given
        job = path.endswith("AwsJobTrigger")
        assert deferred.value.method_name == ("execute_complete" if job else "execute")
        return type(trigger)(**given)

    def submitted(self, batch_id: str) -> tuple[Any, Any]:
        """What the batch's task waits for, and the job that it submitted."""
        trigger = self.deferred(self.task().execute, {"run_id": batch_id})
        return trigger, self.aws.jobs[-1]

    @staticmethod
    def fires(trigger: Any) -> dict[str, Any]:
        """The event with which the trigger wakes its task."""

        async def first() -> dict[str, Any]:
            async with aclosing(trigger.run()) as events:
                event = await asyncio.wait_for(anext(events), SOON)
            told: dict[str, Any] = json.loads(json.dumps(event.payload))
            return told

        return asyncio.run(first())

    def wakes(self, batch_id: str, trigger: Any) -> Any:
        """Let a new task of the batch go on once the trigger fires; what it then waits for, if anything."""
        task, event = self.task(), self.fires(trigger)
        try:
            task.execute_complete({"run_id": batch_id}, event)
        except self.rooms.exceptions.TaskDeferred as deferred:
            return deferred.trigger
        return None


class Aws:
    """A queue and a job definition at an endpoint, and the hand that moves jobs on."""

    def __init__(self, endpoint: str, asked: list[dict[str, Any]]) -> None:
        import boto3

        self.endpoint = endpoint
        self.asked = asked
        """Every submit as it arrived: moto forgets some of it."""
        told = {"region_name": REGION, "aws_access_key_id": "x", "aws_secret_access_key": "x"}
        self.client: Any = boto3.client("batch", endpoint_url=endpoint, **told)
        role = boto3.client("iam", endpoint_url=endpoint, **told).create_role(
            RoleName="batch", AssumeRolePolicyDocument="{}"
        )["Role"]["Arn"]
        machines = self.client.create_compute_environment(
            computeEnvironmentName="machines", type="UNMANAGED", serviceRole=role
        )["computeEnvironmentArn"]
        self.client.create_job_queue(
            jobQueueName=QUEUE,
            state="ENABLED",
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": machines}],
        )
        self.client.register_job_definition(
            jobDefinitionName=DEFINITION,
            type="container",
            containerProperties={"image": "gridline-gpu", "vcpus": 4, "memory": 16384, "command": ["false"]},
        )

    def forget(self) -> None:
        """No job was ever submitted."""
        from moto.batch.models import batch_backends

        backend = batch_backends[ACCOUNT][REGION]
        backend._jobs.clear()
        for queue in backend._job_queues.values():
            queue.jobs.clear()

    @property
    def jobs(self) -> list[Any]:
        """Every job, oldest first, as moto keeps it."""
        from moto.batch.models import batch_backends

        return list(batch_backends[ACCOUNT][REGION]._jobs.values())

    def submit(self, name: str) -> str:
        """Submit a job of that name; its id."""
        answer = self.client.submit_job(jobName=name, jobQueue=QUEUE, jobDefinition=DEFINITION)
        return str(answer["jobId"])

    def command(self, job: Any) -> list[str]:
        """What the job's container was told to run, as AWS tells it."""
        (stated,) = self.client.describe_jobs(jobs=[job.job_id])["jobs"]
        return list(stated["container"]["command"])

    def tags(self, job: Any) -> dict[str, str]:
        """What the job is tagged with."""
        return dict(self.client.list_tags_for_resource(resourceArn=job.arn)["tags"])

    @staticmethod
    def run(job: Any) -> None:
        """A machine was found, and the container runs."""
        job.status = "RUNNING"

    @staticmethod
    def end(job: Any, exit_code: int | None, *, why: str = "") -> None:
        """The container ended with this exit code, or its machine went away under it."""
        job.exit_code, job.job_stopped_reason = exit_code, why or None
        job.log_stream_name = f"{DEFINITION}/default/{job.job_id}"
        job._mark_stopped(success=exit_code == 0)


@contextmanager
def running_aws() -> Iterator[Aws]:
    """A server of its own, whose jobs start no container, and tell their exit codes as AWS does and moto does not."""
    from moto.batch import models, responses
    from moto.server import ThreadedMotoServer

    details = models.Job._container_details

    def with_exit_code(job: Any) -> dict[str, Any]:
        ended = {} if job.exit_code is None else {"exitCode": job.exit_code}
        told: dict[str, Any] = details(job)
        return told | ended

    submit = responses.BatchResponse.submitjob
    asked: list[dict[str, Any]] = []

    def noted(response: Any) -> Any:
        asked.append(json.loads(response.body))
        return submit(response)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(responses.BatchResponse, "submitjob", noted)
        patch.setattr(models.Job, "start", lambda job: None)
        patch.setattr(models.Job, "_container_details", with_exit_code)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            host, port = server.get_host_and_port()
            yield Aws(f"http://{host}:{port}", asked)
        finally:
            server.stop()
