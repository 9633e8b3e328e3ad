"""The stream that follows AWS Batch jobs: what it tells, what it keeps alive, and what it ends."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from gridline.capacity import leases
from gridline.capacity.leases import Outcome
from tests.plugins.aws import REGION, SOON, World

pytestmark = pytest.mark.airflow


def watch(world: World) -> Any:
    """A look of its own at the region."""
    return world.rooms.aws_triggers.Watch(REGION)


def test_a_waiting_job_keeps_its_lease_and_a_running_one_must_beat(aws_world: World) -> None:
    """While AWS finds a machine the looks renew the lease; once the job runs, silence costs it."""
    batch = aws_world.granted()
    trigger, job = aws_world.submitted(batch)
    look, watched = watch(aws_world), {trigger.job_id: trigger.lease_id}
    for status in ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING"):
        job.status = status
        aws_world.yard.clock.advance(seconds=40)
        assert look.look(watched) == {}
        assert leases.lapse() == 0
    aws_world.aws.run(job)
    aws_world.yard.clock.advance(seconds=40)
    assert look.look(watched) == {}
    aws_world.yard.clock.advance(seconds=40)
    assert leases.lapse() == 1
    assert look.look(watched)[trigger.job_id]["ended"] is False


def test_a_cancelled_batch_takes_its_job_out_of_the_queue(aws_world: World) -> None:
    """A job without a machine reads no stop marker: it is terminated, and the task's end is the attempt's."""
    batch = aws_world.granted()
    trigger, job = aws_world.submitted(batch)
    aws_world.yard.cancel(batch)
    assert aws_world.wakes(batch, trigger) is None
    assert job.stop
    assert [one.outcome for one in aws_world.yard.attempts()] == [Outcome.STOPPED]


def test_while_aws_is_away_leases_are_looked_at(
    aws_world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An AWS that does not answer fails no task and costs no lease of a waiting job, and a lost one is noticed."""
    batch = aws_world.granted()
    trigger, job = aws_world.submitted(batch)
    jobs = aws_world.rooms.aws_batch.Jobs
    look, watched = watch(aws_world), {trigger.job_id: trigger.lease_id}

    def away(self: object, job_ids: object) -> None:
        raise aws_world.rooms.aws_batch.AwsAway("no answer")

    monkeypatch.setattr(jobs, "look", away)
    for _ in range(3):
        aws_world.yard.clock.advance(seconds=40)
        assert look.look(watched) == {}
        assert leases.lapse() == 0
    assert "AWS Batch does not say how its jobs do: no answer" in caplog.text
    aws_world.yard.clock.advance(seconds=60)
    assert leases.lapse() == 1
    assert look.look(watched) == {trigger.job_id: {"ended": False, "job_exit": 3}}
    assert not job.stop


def test_a_killed_wait_ends_its_job_and_gives_the_lease_back(aws_world: World) -> None:
    """An operator who clears a waiting task, or sets its state, leaves no job on AWS and no GPU taken."""
    batch = aws_world.granted()
    trigger, job = aws_world.submitted(batch)
    aws_world.aws.run(job)
    asyncio.run(trigger.on_kill())
    assert (job.stop, job.job_stopped_reason) == (True, "Its task was ended in Airflow.")
    assert aws_world.yard.leases(live=True) == []
    assert [one.outcome for one in aws_world.yard.attempts()] == [Outcome.STOPPED]


def test_a_killed_wait_gives_the_lease_back_without_aws(
    aws_world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An AWS that does not hear it keeps no GPU of ours taken: the job reads its stop marker."""
    batch = aws_world.granted()
    trigger, _ = aws_world.submitted(batch)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    asyncio.run(trigger.on_kill())
    assert aws_world.yard.leases(live=True) == []
    assert "could not be terminated" in caplog.text


def test_a_look_that_fails_fails_no_task(
    aws_world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a look raises, the stream looks again: an error that left it would fail every waiting task."""
    batch = aws_world.granted()
    trigger, job = aws_world.submitted(batch)
    aws_world.aws.end(job, 4)
    look, failures = aws_world.rooms.aws_triggers.Watch.look, [RuntimeError("broken")]

    def broken_once(self: object, watched: object) -> Any:
        if failures:
            raise failures.pop()
        return look(self, watched)

    monkeypatch.setattr(aws_world.rooms.aws_triggers.Watch, "look", broken_once)
    assert aws_world.fires(trigger)["job_exit"] == 4
    assert "A look at AWS Batch failed" in caplog.text


def test_many_jobs_are_one_stream(aws_world: World) -> None:
    """Triggers of a region share one look, each hears of its own job alone, and who has left is looked at no more."""
    aws, rooms = aws_world.aws, aws_world.rooms
    first, second = aws.submit("one"), aws.submit("two")
    for job in aws.jobs:
        aws.end(job, 0 if job.job_id == first else 1)
    triggers = [
        rooms.aws_triggers.AwsJobTrigger(
            batch_id="batch_a", partition=number, lease_id=f"lease_{number}", job_id=job_id, region=REGION
        )
        for number, job_id in enumerate((first, second))
    ]
    assert triggers[0].shared_stream_key() == triggers[1].shared_stream_key()

    async def heard() -> list[int]:
        async def news() -> Any:
            yield {}
            yield {"another": {"ended": True, "job_exit": 1}}
            yield rooms.aws_triggers.Watch(REGION).look({first: "lease_0", second: "lease_1"})

        told = []
        for trigger in triggers:
            async with aclosing(trigger.filter_shared_stream(news())) as events:
                event = await asyncio.wait_for(anext(events), SOON)
                assert list(trigger._watched[REGION].values()) == [trigger]
                told.append(event.payload["job_exit"])
        return told

    assert asyncio.run(heard()) == [0, 1]
    assert rooms.aws_triggers.AwsJobTrigger._watched[REGION] == {}
