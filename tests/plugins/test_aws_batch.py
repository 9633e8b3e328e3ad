"""A task whose pool runs its jobs on AWS Batch: submit, defer, and end, against moto."""

import json
import logging
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gridline.capacity import leases, remote
from gridline.capacity.leases import Outcome
from gridline.capacity.pools import AwsBatch
from gridline.limits import LEASE_TTL_SECONDS
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.settings import ROOT, Settings
from gridline.storage import layout
from tests.gpu_jobs.conftest import STUB, Partition, environment
from tests.plugins.aws import DEFINITION, QUEUE, REGION, Aws, World

pytestmark = pytest.mark.airflow


def test_a_partition_is_submitted_and_its_task_defers(
    aws_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """One job with the order, named for the lease, tagged with the batch, tried once; its task takes no worker."""
    batch = aws_world.granted()
    with caplog.at_level(logging.INFO):
        trigger, job = aws_world.submitted(batch)
    (lease,) = aws_world.yard.leases(live=True)
    assert (trigger.job_id, trigger.lease_id, trigger.region) == (job.job_id, lease.id, REGION)
    assert (job.job_name, job.job_queue.name, job.job_definition.name) == (
        f"gridline-{lease.id}",
        QUEUE,
        DEFINITION,
    )
    *program, order = aws_world.aws.command(job)
    assert program == ["python", "-m", "gpu_jobs.alone"]
    assert JobOrder.from_json(order) == remote.begun(batch, 0)
    assert aws_world.aws.asked[-1]["retryStrategy"] == {"attempts": 1}
    assert aws_world.aws.tags(job) == {"gridline-batch": batch}
    assert f"region={REGION}#jobs/detail/{job.job_id}" in caplog.text


@pytest.mark.parametrize(
    ("exit_code", "healthy", "outcome"),
    [
        (3, True, Outcome.STOPPED),
        (4, False, Outcome.ENGINE_UNHEALTHY),
        (1, True, Outcome.CRASHED),
        (137, True, Outcome.CRASHED),
        (None, True, Outcome.CRASHED),
        (None, False, Outcome.ENGINE_UNHEALTHY),
    ],
)
def test_how_a_job_ended_is_how_its_attempt_ended(
    aws_world: World, exit_code: int | None, *, healthy: bool, outcome: Outcome
) -> None:
    """The container's exit code counts as a subprocess's does; none (a machine that was reclaimed) is a crash."""
    batch = aws_world.granted()
    trigger, job = aws_world.submitted(batch)
    order = remote.begun(batch, 0)
    assert order is not None
    aws_world.yard.progress(order, healthy=healthy)
    aws_world.aws.end(job, exit_code, why="Host EC2 terminated.")
    then = aws_world.wakes(batch, trigger)
    assert isinstance(then, aws_world.rooms.triggers.GrantTrigger)
    assert [one.outcome for one in aws_world.yard.attempts()] == [outcome]
    assert aws_world.yard.leases(live=True) == []


def test_a_cleared_task_goes_on_with_its_job(aws_world: World) -> None:
    """Whatever became of the task after the submit: the next one waits for the same job, and no second attempt begins."""
    batch = aws_world.granted()
    trigger, job = aws_world.submitted(batch)
    aws_world.aws.run(job)
    again, _ = aws_world.submitted(batch)
    assert (again.job_id, again.lease_id) == (trigger.job_id, trigger.lease_id)
    assert (len(aws_world.aws.jobs), len(aws_world.yard.attempts())) == (1, 1)
    aws_world.aws.end(job, 3)
    ended, _ = aws_world.submitted(batch)
    assert ended.job_id == trigger.job_id
    aws_world.wakes(batch, ended)
    assert [one.outcome for one in aws_world.yard.attempts()] == [Outcome.STOPPED]


def test_a_claim_without_a_job_is_submitted_by_the_next_task(aws_world: World) -> None:
    """A task that died between its claim and the submit costs no attempt: the next one submits the same order."""
    batch = aws_world.granted()
    order = aws_world.yard.begin(batch)
    trigger, job = aws_world.submitted(batch)
    assert trigger.lease_id == order.lease_id
    assert aws_world.aws.command(job)[-1] == order.to_json()
    assert len(aws_world.yard.attempts()) == 1


def test_of_two_jobs_of_a_lease_the_one_that_goes_on_is_followed(aws_world: World) -> None:
    """Two tasks at once may both submit: who comes later follows the job that is not over, then one that succeeded."""
    jobs, aws = aws_world.rooms.aws_batch.Jobs(REGION), aws_world.aws
    batch = aws_world.granted()
    order = aws_world.yard.begin(batch)
    place = remote.place_of(order.lease_id)
    for _ in range(3):
        aws.submit(aws_world.rooms.aws_batch.job_name(order.lease_id))
    aws.submit(aws_world.rooms.aws_batch.job_name(order.lease_id).upper())
    failed, done, goes_on, other = aws.jobs
    aws.end(failed, 1)
    aws.end(done, 0)
    assert jobs.submit(order, place, batch_id=batch) == goes_on.job_id
    aws.end(goes_on, 1)
    assert jobs.submit(order, place, batch_id=batch) == done.job_id
    assert len(aws.jobs) == 4
    assert other.status == "SUBMITTED"


def test_a_lost_lease_ends_its_job(aws_world: World) -> None:
    """A job whose lease lapsed is terminated wherever it is, and its task waits for the next grant."""
    batch = aws_world.granted()
    trigger, job = aws_world.submitted(batch)
    aws_world.aws.run(job)
    aws_world.yard.clock.advance(seconds=60)
    assert leases.lapse() == 1
    then = aws_world.wakes(batch, trigger)
    assert isinstance(then, aws_world.rooms.triggers.GrantTrigger)
    assert (job.stop, job.job_stopped_reason) == (True, "Its lease is gone.")
    assert [one.outcome for one in aws_world.yard.attempts()] == [Outcome.EXPIRED]


@pytest.mark.parametrize("away", ["unreachable", "refused"])
def test_a_job_that_cannot_be_submitted_gives_its_lease_back(
    aws_world: World, away: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As with a subprocess that cannot start: the GPU is free at once, and no attempt is counted."""
    batch = aws_world.granted()
    if away == "unreachable":
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    else:
        place = AwsBatch("no-such-queue", DEFINITION, region=REGION)
        monkeypatch.setattr(remote, "place_of", lambda lease_id: place)
    then = aws_world.deferred(aws_world.task().execute, {"run_id": batch})
    assert isinstance(then, aws_world.rooms.triggers.GrantTrigger)
    assert aws_world.yard.leases(live=True) == []
    assert [one.outcome for one in aws_world.yard.attempts()] == [Outcome.ENGINE_UNHEALTHY]
    assert aws_world.yard.partition(batch).attempts == 0
    assert "could not be submitted to AWS Batch" in caplog.text


def test_a_task_that_is_stopped_while_it_submits_leaves_no_job(aws_world: World) -> None:
    """Nobody would follow the job: it is terminated, its lease given back, and the task does not look successful."""
    batch = aws_world.granted()
    task = aws_world.task()
    task.on_kill()
    with pytest.raises(aws_world.rooms.exceptions.AirflowException, match="stopped"):
        task.execute({"run_id": batch})
    (job,) = aws_world.aws.jobs
    assert job.stop
    assert [one.outcome for one in aws_world.yard.attempts()] == [Outcome.STOPPED]


def test_a_slow_submit_costs_no_lease(aws_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease has its full time when the task defers, however long AWS took to answer."""
    jobs = aws_world.rooms.aws_batch.Jobs
    submit = jobs.submit

    def slow(self: object, *given: object, **named: object) -> object:
        aws_world.yard.clock.advance(seconds=40)
        return submit(self, *given, **named)

    monkeypatch.setattr(jobs, "submit", slow)
    aws_world.submitted(aws_world.granted())
    (lease,) = aws_world.yard.leases(live=True)
    assert lease.expires_at == aws_world.yard.clock.now() + timedelta(seconds=LEASE_TTL_SECONDS)


def test_a_pool_without_aws_runs_its_jobs_here(aws_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a job runs is its pool's to say, not the platform's: beside pools on AWS others have subprocesses."""
    other = {"name": "aws", "gpus": 1, "models": ["*"], "datacenter": True}
    here = {"name": "local", "gpus": 1, "models": ["*"], "datacenter": False}
    place = {"job_queue": QUEUE, "job_definition": DEFINITION}
    stated = json.dumps([other | {"aws_batch": place}, here])
    monkeypatch.setattr(remote, "settings", lambda: Settings(pools=stated))
    ran: list[JobOrder] = []

    class Job:
        """Ends at once."""

        def __init__(self, order: JobOrder) -> None:
            ran.append(order)

        def follow(self, log: object, *, wanted: object) -> JobExit:
            return JobExit.DONE

    monkeypatch.setattr(aws_world.rooms.jobs, "JobProcess", Job)
    batch = aws_world.granted()
    aws_world.task().execute({"run_id": batch})
    assert (len(ran), aws_world.aws.jobs) == (1, [])
    assert aws_world.yard.partition(batch).state == "done"


def test_an_order_fits_what_aws_takes(aws_world: World) -> None:
    """Of very many earlier attempts the oldest are left out: their lines run again, and no line counts twice."""
    prefixes = [layout.attempt_prefix("batch_a", 0, number, f"lease_{number:024d}") for number in range(200)]
    order = JobOrder("batches/batch_a/parts/0000/spec.json", prefixes[-1], tuple(prefixes[:-1]), 1)
    cut = aws_world.rooms.aws_batch.short(order)
    assert 5_500 < len(cut.to_json()) <= 6_000
    assert cut.earlier_prefixes[-1] == prefixes[-2]
    few = JobOrder("spec", prefixes[-1], tuple(prefixes[:3]), 1)
    assert aws_world.rooms.aws_batch.short(few) == few


def run(aws: Aws, job: object, world: World, folder: Path) -> int:
    """Run what was submitted, as the container would: the command, the store's address, and nothing of the platform."""
    python, *arguments = aws.command(job)
    assert python == "python"
    told = environment(
        folder / "state",
        GRIDLINE_STORE_URL=world.yard.store.url,
        GRIDLINE_ENGINE_COMMAND=STUB,
        GRIDLINE_ENGINE_PYTHON=sys.executable,
        TMPDIR=str(folder),
    )
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, env=told, check=False).returncode


@pytest.mark.programs
def test_from_the_grant_to_the_results(aws_world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The submitted command runs the partition on engines of its own; its segments, exit code and end are the attempt's."""
    # The job goes by the world's clock, so its deadline must be to come.
    aws_world.yard.clock.moment = datetime.now(UTC)
    batch = aws_world.granted()
    folder = short_folder(tmp_path_factory)
    model = {
        "id": "stub", "commit": "", "dtype": "float32", "kind": "chat", "context_tokens": 8192,
        "engine_arguments": ["--journal", str(folder / "journal.jsonl")],
    }  # fmt: skip
    lines = Partition(
        aws_world.yard.store, "", folder / "nobody.sock", folder / "journal.jsonl", batch, spec_model=model
    )
    lines.write([f"line {number}" for number in range(10)])
    trigger, job = aws_world.submitted(batch)
    assert 24 * 3600 < job.timeout["attemptDurationSeconds"] < 25 * 3600
    aws_world.aws.run(job)
    aws_world.aws.end(job, run(aws_world.aws, job, aws_world, folder))
    assert aws_world.wakes(batch, trigger) is None
    order = JobOrder.from_json(aws_world.aws.command(job)[-1])
    segments = [key for key in aws_world.yard.store.list(order.attempt_prefix) if layout.is_segment(key)]
    assert segments
    part = aws_world.yard.partition(batch)
    assert (part.state, part.lines_done, part.lines_failed) == ("done", 10, 0)
    assert [(one.outcome, one.engine_healthy) for one in aws_world.yard.attempts()] == [(Outcome.DONE, True)]
    assert aws_world.yard.leases(live=True) == []


def short_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder whose path leaves room for a Unix socket's name."""
    folder = factory.mktemp("a")
    assert len(str(folder)) < 60
    return folder
