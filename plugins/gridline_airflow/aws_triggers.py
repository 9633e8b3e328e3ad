"""One shared stream that follows the AWS Batch jobs of every waiting task, and ends those that are not wanted any more.

A region's jobs are described together, a hundred a call, so a thousand waiting tasks are ten calls each time. Like the
stream of grants it carries levels: a restarted triggerer sees at its first look what it missed.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, ClassVar

from airflow.triggers.base import BaseEventTrigger, TriggerEvent  # noqa: TID253  # an Airflow room

from gridline.lines.exits import JobExit
from gridline_airflow.aws_batch import ENDED, PLACING, AwsAway, Jobs

log = logging.getLogger(__name__)

POLL_SECONDS = 10.0
"""A few of these fit into a lease's time, which is all that keeps the lease of a job without a machine."""

News = Mapping[str, dict[str, Any]]
"""By job id what its task is woken with; a job of which there is nothing new is not in it."""


class Watch:
    """Looks at the jobs of one region; remembers what each was when AWS last answered."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._jobs: Jobs | None = None
        self._status: dict[str, str] = {}

    def look(self, watched: Mapping[str, str]) -> News:
        """What is new of these jobs, given with their leases: ended, or not wanted any more."""
        from gridline.capacity import remote

        found = {}
        try:
            self._jobs = self._jobs or Jobs(self._region)
            found = self._jobs.look(list(watched)) if watched else {}
        except AwsAway as error:
            # Leases are looked at all the same: a lost one must be noticed, and a job that is placed keeps its own.
            log.warning("AWS Batch does not say how its jobs do: %s", error)
        known = {job_id: one.status for job_id, one in found.items()}
        self._status = {one: known.get(one, self._status.get(one, "SUBMITTED")) for one in watched}
        going = {job_id: lease for job_id, lease in watched.items() if self._status[job_id] not in ENDED}
        placing = [lease for job_id, lease in going.items() if self._status[job_id] in PLACING]
        unwanted = remote.unwanted(list(going.values()), placing=placing) if going else set()
        news: dict[str, dict[str, Any]] = {
            job_id: {
                "ended": True,
                "job_exit": int(one.job_exit),
                "exit_code": one.exit_code,
                "why": one.why,
                "log_stream": one.log_stream,
            }
            for job_id, one in found.items()
            if one.ended
        }
        return news | {
            job_id: {"ended": False, "job_exit": int(JobExit.STOPPED)}
            for job_id, lease in going.items()
            if lease in unwanted
        }


class AwsJobTrigger(BaseEventTrigger):
    """Fires once its job has ended, or must end because its lease is gone or waits in vain."""

    _watched: ClassVar[dict[str, dict[int, "AwsJobTrigger"]]] = {}

    def __init__(self, *, batch_id: str, partition: int, lease_id: str, job_id: str, region: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.batch_id, self.partition = batch_id, partition
        self.lease_id, self.job_id, self.region = lease_id, job_id, region

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes this trigger again."""
        return (
            "gridline_airflow.aws_triggers.AwsJobTrigger",
            {
                "batch_id": self.batch_id,
                "partition": self.partition,
                "lease_id": self.lease_id,
                "job_id": self.job_id,
                "region": self.region,
            },
        )

    def shared_stream_key(self) -> tuple[str, str]:
        """One stream for a region's jobs."""
        return ("gridline-aws-batch", self.region)

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncGenerator[News, None]:
        """News for ever. An error here would fail every waiting task, so none leaves: it looks again."""
        watch = Watch(kwargs["region"])
        while True:
            mine = cls._watched.get(kwargs["region"], {}).values()
            try:
                # In a thread: neither the provider's hook nor our units of work wait without blocking.
                news = await asyncio.to_thread(watch.look, {one.job_id: one.lease_id for one in mine})
            except Exception:
                log.exception("A look at AWS Batch failed; looking again in %s s.", POLL_SECONDS)
            else:
                yield news
            await asyncio.sleep(POLL_SECONDS)

    async def filter_shared_stream(self, stream: AsyncIterator[News]) -> AsyncIterator[TriggerEvent]:
        """This job's one event. While somebody waits here, the stream looks at the job."""
        together = AwsJobTrigger._watched.setdefault(self.region, {})
        together[id(self)] = self
        try:
            async for news in stream:
                if self.job_id in news:
                    told = {"lease_id": self.lease_id, "job_id": self.job_id, "region": self.region}
                    yield TriggerEvent(told | news[self.job_id])  # type: ignore[no-untyped-call]
                    return
        finally:
            together.pop(id(self), None)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """The same on a private stream: for ``dag.test()``, and where streams cannot be shared."""
        async with aclosing(self.open_shared_stream(self.serialize()[1])) as stream:
            async for event in self.filter_shared_stream(stream):
                yield event

    async def on_kill(self) -> None:
        """Someone cleared the task or set its state while it waited: no task will see the job's end, so end both here."""
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        from gridline.capacity import remote

        end_job(self.region, self.job_id, why="Its task was ended in Airflow.")
        remote.end(self.batch_id, self.partition, self.lease_id, JobExit.STOPPED)


def end_job(region: str, job_id: str, *, why: str) -> None:
    """Terminate a job. If AWS does not hear it, the stop marker of its attempt ends it, as soon as it runs."""
    try:
        Jobs(region).terminate(job_id, why)
    except AwsAway as error:
        log.warning("AWS Batch job %s could not be terminated: %s", job_id, error)
    else:
        log.info("AWS Batch job %s was told to end: %s", job_id, why)
