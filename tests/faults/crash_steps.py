"""Every step of a batch's way, as its process takes it: the API's calls, the DAG's task bodies, the keeper's duties, the job.

``drive`` is the rest of the platform: runs are cleared and run again from the start, the keeper does all its duties,
and time goes on, until every batch has ended.
"""

import asyncio
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flask import Flask
from sqlalchemy import func, select

from api.app import create_app
from gpu_jobs.job import Job, Rhythm
from gpu_jobs.logs import Log
from gridline import storage
from gridline.batches import finishing, holding, validating
from gridline.batches.tables import Batch
from gridline.capacity import allocator, attempts, pools, waiting
from gridline.customers import accounts, tokens
from gridline.db.work import unit_of_work
from gridline.keeper.credit import resume_funded
from gridline.keeper.deadlines import Deadlines
from gridline.keeper.dispatch import dispatch
from gridline.keeper.progress import ProgressFollower
from gridline.keeper.reconcile import reconcile
from gridline.ledger import posting
from gridline.limits import LEASE_TTL_SECONDS
from gridline.lines.exits import JobExit
from gridline.lines.orders import JobOrder
from gridline.settings import settings
from tests.faults.crash_world import LINES, NEIGHBOUR_LINES, World, lines

RHYTHM = Rhythm(beat=0.05, close=0.005, ask=0.02, segment_seconds=60, segment_lines=8)
CREDIT = 10**9
ROUNDS_MAX = 12
BATCHES = {"endpoint": "/v1/chat/completions"}

_api: list[Flask] = []


def prepare() -> None:
    """What a process has ready before its first step."""
    _api.append(create_app())


def setup(world: World, *arguments: str) -> None:
    """Two accounts, GPUs, and the neighbour's batch. ``poor``: the customer has no credit yet."""
    with unit_of_work() as work:
        posting.open_platform_books(work)
        pools.seed(work, '[{"name": "local", "gpus": 4, "models": ["*"], "datacenter": false}]')
        for name in ("ann", "bob"):
            account = accounts.open_account(work, name)
            if not (name == "ann" and "poor" in arguments):
                posting.grant(work, account.id, CREDIT, actor="operator", why="test", key="first")
            world.values[name] = account.id
            world.values[f"{name} token"] = tokens.issue(work, account.id, name)[1]
    file_id = _sent(world, "/v1/files", files={"purpose": "batch"}, data=lines(NEIGHBOUR_LINES), who="bob")[
        "id"
    ]
    made = _sent(world, "/v1/batches", json=_wanted(file_id, "24h"), who="bob")
    world.values["neighbour"] = made["id"]


def _wanted(file_id: str, window: str) -> dict[str, str]:
    return {"input_file_id": file_id, "completion_window": window, **BATCHES}


def _sent(
    world: World,
    path: str,
    *,
    files: dict[str, Any] | None = None,
    data: bytes = b"",
    who: str = "ann",
    may: int = 200,
    **more: Any,
) -> dict[str, Any]:
    """A customer's call; what it was answered."""
    headers = {"Authorization": f"Bearer {world.values[f'{who} token']}"} | more.pop("headers", {})
    if files is not None:
        name = "data" if path.endswith("/parts") else "file"
        more["data"] = {**files, name: (io.BytesIO(data), "r.jsonl")}
        more["content_type"] = "multipart/form-data"
    # As behind a server that ends the body itself.
    answer = (
        _api[0]
        .test_client()
        .post(path, headers=headers, environ_overrides={"wsgi.input_terminated": True}, **more)
    )
    if answer.status_code not in (200, may):
        raise AssertionError(f"{path} answered {answer.status_code}: {answer.text}")
    told: dict[str, Any] = answer.get_json()
    return told


def upload(world: World, *arguments: str) -> None:
    """Upload the file. Sent again it is another file."""
    data = lines(LINES, slow="slow" in arguments, bad="bad" in arguments)
    world.values["file"] = _sent(world, "/v1/files", files={"purpose": "batch"}, data=data)["id"]


def open_upload(world: World) -> None:
    """Open an upload in parts."""
    wanted = {
        "filename": "r.jsonl",
        "purpose": "batch",
        "bytes": len(lines(LINES)),
        "mime_type": "text/jsonl",
    }
    world.values["upload"] = _sent(world, "/v1/uploads", json=wanted)["id"]


def send_part(world: World, number: str) -> None:
    """Send one of its two parts."""
    data = lines(LINES)
    half = data[:3_000] if number == "0" else data[3_000:]
    path = f"/v1/uploads/{world.values['upload']}/parts"
    world.values[f"part {number}"] = _sent(world, path, files={}, data=half)["id"]


def complete_upload(world: World) -> None:
    """Make it a file."""
    path = f"/v1/uploads/{world.values['upload']}/complete"
    wanted = {"part_ids": [world.values["part 0"], world.values["part 1"]]}
    world.values["file"] = _sent(world, path, json=wanted)["file"]["id"]


def create(world: World, window: str = "24h") -> None:
    """Create the batch; sent again, its key finds it."""
    headers = {"Idempotency-Key": "the one"}
    made = _sent(world, "/v1/batches", json=_wanted(world.values["file"], window), headers=headers)
    world.values["batch"] = made["id"]


def cancel(world: World) -> None:
    """Cancel it."""
    _sent(world, f"/v1/batches/{world.batch_id}/cancel", may=409)


def grant(world: World) -> None:
    """Top the customer up."""
    with unit_of_work() as work:
        posting.grant(work, world.values["ann"], CREDIT, actor="operator", why="test", key="top-up")


def begin(world: World, number: str) -> None:
    """Claim the partition's grant."""
    order = attempts.begin(world.batch_id, int(number))
    if isinstance(order, JobOrder):
        world.values[f"order {number}"] = order.to_json()


def job(world: World, number: str) -> None:
    """Run the GPU job in this process."""
    order = JobOrder.from_json(world.values[f"order {number}"])
    world.values[f"exit {number}"] = int(_run_job(world, order))


def end(world: World, number: str, *how: str) -> None:
    """Give the partition's lease back: as its job ended, or as the word says."""
    order = JobOrder.from_json(world.values[f"order {number}"])
    exits = {"crashed": None, "stopped": JobExit.STOPPED}
    ended = exits[how[0]] if how else JobExit(world.values[f"exit {number}"])
    attempts.end(world.batch_id, int(number), order.lease_id, ended)


def _run_job(world: World, order: JobOrder) -> JobExit:
    async def run() -> JobExit:
        job = Job(
            order,
            storage.store(),
            socket=settings().engines_socket,
            log=Log("gpu-job"),
            rhythm=RHYTHM,
            clock=world.clock,
        )
        return await job.run()

    return asyncio.run(run())


def serve_neighbour(world: World) -> None:
    """The neighbour's batch runs to its end."""
    batch_id = world.values["neighbour"]
    validating.validate(batch_id)
    holding.hold_credits(batch_id)
    allocator.allocate()
    if not _run_tasks(world, batch_id):
        raise AssertionError("The neighbour had to wait.")
    world.runs[batch_id]["state"] = "success"


def fall_silent(world: World, number: str) -> None:
    """The keeper sees no heartbeat for longer than a lease lives, and another attempt gets the partition."""
    world.values["late order"] = world.values[f"order {number}"]
    follower = ProgressFollower(monotonic=lambda: world.clock.now().timestamp())
    follower.follow()
    world.clock.advance(seconds=LEASE_TTL_SECONDS + 1)
    follower.follow()
    allocator.allocate()
    begin(world, number)
    if world.values["late order"] == world.values[f"order {number}"]:
        raise AssertionError("The silent job kept its lease.")


def end_late(world: World, number: str) -> None:
    """The task of the job that had fallen silent hears how that ended."""
    order = JobOrder.from_json(world.values["late order"])
    attempts.end(world.batch_id, int(number), order.lease_id, JobExit.DONE)


def later(world: World, hours: str) -> None:
    """Time goes on."""
    world.clock.advance(hours=float(hours))


def lose_run(world: World) -> None:
    """An operator deletes the run."""
    world.runs.pop(world.batch_id)


def end_run(world: World) -> None:
    """The run's last task has ended."""
    world.runs[world.batch_id]["state"] = "success"


def drive(world: World) -> None:
    """Everything else happens until every batch has ended."""

    def seconds() -> float:
        return world.clock.moment.timestamp()

    follower, deadlines = ProgressFollower(monotonic=seconds), Deadlines(monotonic=seconds)
    for _ in range(ROUNDS_MAX):
        dispatch(world.airflow())
        follower.follow()
        deadlines.enforce()
        resume_funded()
        allocator.allocate()
        for run_id, run in world.runs.items():
            if run["state"] in ("queued", "running"):
                run["state"] = "success" if _run_tasks(world, run_id) else "running"
        reconcile(world.airflow())
        with unit_of_work() as work:
            if not work.session.scalar(select(func.count()).where(Batch.ended_at.is_(None))):
                return
        world.clock.moment += timedelta(seconds=50)
    raise AssertionError("A batch did not end.")


def _run_tasks(world: World, batch_id: str) -> bool:
    """The DAG's tasks in their order, all of them again; whether the run has ended (it may also still wait)."""
    partitions = validating.validate(batch_id)
    held = holding.hold_credits(batch_id) if partitions else "skipped"
    if held == "held":
        answer = waiting.look_for_grant(batch_id)
        if answer == "deferred" or (answer == "granted" and not _infer(world, batch_id, partitions)):
            return False
    if held == "held" and answer == "granted":
        finishing.collate(batch_id)
    finishing.settle(batch_id)
    return True


def _infer(world: World, batch_id: str, partitions: list[int]) -> bool:
    """Every partition's attempts; False when one of them has to wait for a grant."""
    for number in partitions:
        answer = "again"
        while answer == "again":
            order = attempts.begin(batch_id, number)
            if order is None:
                return False
            if not isinstance(order, JobOrder):
                break
            answer = attempts.end(batch_id, number, order.lease_id, _run_job(world, order))
    return True


STEPS: dict[str, Callable[..., object]] = {
    one.__name__: one
    for one in (
        setup, upload, open_upload, send_part, complete_upload, create, cancel, grant, begin, job, end, later,
        serve_neighbour, fall_silent, end_late, lose_run, end_run, drive,
    )
} | {
    # As ``job``, of a process that knows nothing newer than its own start, and leaves nothing but its objects.
    "job_alone": job,
    "dispatch": lambda world: dispatch(world.airflow()),
    "validate": lambda world: validating.validate(world.batch_id),
    "hold_credits": lambda world: holding.hold_credits(world.batch_id),
    "allocate": lambda _: allocator.allocate(),
    "look_for_grant": lambda world: waiting.look_for_grant(world.batch_id),
    "follow": lambda _: ProgressFollower().follow(),
    "collate": lambda world: finishing.collate(world.batch_id),
    "settle": lambda world: finishing.settle(world.batch_id),
    "enforce": lambda _: Deadlines().enforce(),
    "resume_funded": lambda _: resume_funded(),
    "reconcile": lambda world: reconcile(world.airflow()),
}  # fmt: skip


def take(world: World, step: str) -> None:
    """Take one step, named with its arguments."""
    name, *arguments = step.split()
    STEPS[name](world, *arguments)
    if name != "job_alone":
        world.save()
