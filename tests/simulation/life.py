"""The life of a simulated world: its steps, then every fault healed and ten days, then everything once more."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Engine

from gridline.batches.states import TERMINAL
from tests.simulation import deliveries
from tests.simulation.history import History, Violation
from tests.simulation.jobs import SimJob
from tests.simulation.runs import STAGES, SimRun
from tests.simulation.world import BEGIN, World

STEPS = 250
THOROUGH_EVERY = 25
HEALED_DAYS = 10
STILL_MAX = 4
"""Rounds in which nobody has anything to do, then time passes in hours."""
BUSY_MAX = 8
"""Times that tasks and jobs come to their turn in a round; a grant must be claimed within a minute."""
DUTIES = ("deadlines", "progress", "reconcile", "credit", "allocate", "dispatch")

_STANDS = {
    "batches": "SELECT * FROM batches ORDER BY id",
    "entries": "SELECT * FROM entries ORDER BY sequence",
    "resolutions": "SELECT * FROM resolutions ORDER BY batch_id",
    "files": "SELECT * FROM files ORDER BY id",
    "accounts": "SELECT * FROM accounts ORDER BY id",
    "usage_facts": "SELECT * FROM usage_facts ORDER BY batch_id, model",
    "leases": "SELECT * FROM leases ORDER BY id",
}


def live(seed: int, *, engine: Engine, owner: Engine, models: Path, steps: int = STEPS) -> History:
    """One seed from its first step to its end; the history.

    Raises:
        Violation: a promise did not hold; its message is the whole history.
    """
    world = World(seed, engine=engine, owner=owner, models=models)
    with world.running():
        try:
            for number in range(steps):
                world.step()
                if number % THOROUGH_EVERY == 0:
                    world.looks.thorough()
            _heal(world)
            _judge(world)
            _once_more(world)
        except Exception as error:
            told = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            raise Violation(f"seed {seed}: {told}\n{world.history.told()}\nseed {seed}: {told}") from error
    return world.history


def _heal(world: World) -> None:
    """Nothing goes wrong any more, and ten days pass, or fewer if everything has ended."""
    world.history.add("all faults are healed")
    world.faults.healed = True
    world.keeper_back = BEGIN
    world.airflow.away = False
    for job in world.jobs:
        job.silent_until = None
    end, still = world.clock.now() + timedelta(days=HEALED_DAYS), 0
    while world.clock.now() < end:
        if _quiet(world):
            return
        still = 0 if _round(world) else still + 1
        world.tick(4.0 if still < STILL_MAX else 4 * 3_600.0)
    raise Violation(f"{HEALED_DAYS} days without a fault, and still: {_open(world)}")


def _round(world: World) -> bool:
    """Everybody acts; whether anybody but the keeper had something to do."""
    world.began = world.clock.now()
    for name in DUTIES:
        world.act(f"duty {name}", world.keeper[name])
    busy = False
    for _ in range(BUSY_MAX):
        due, alive = world.due_tasks(), [job for job in world.jobs if not job.over]
        for run, key in due:
            world.run_task(run, key)
        for job in alive:
            world.step_job(job)
        if not due and not alive:
            break
        busy = True
    if world.violation is not None:
        raise world.violation
    world.looks.quick(world.began)
    return busy


def _quiet(world: World) -> bool:
    return not _open(world)


def _open(world: World) -> list[str]:
    """What has not come to its end."""
    batches = [row for row in world.looks.batches() if row["status"] not in TERMINAL]
    found = [f"{row['id']} is {row['status']}, {row['waiting']}, {row['reason_code']}" for row in batches]
    leases = world.looks.rows("SELECT id FROM leases WHERE released_at IS NULL")
    asked = world.looks.rows("SELECT batch_id FROM run_requests WHERE done_at IS NULL")
    found += [f"lease {row['id']} is live" for row in leases]
    found += [f"a run of {row['batch_id']} is asked for" for row in asked]
    return found + [f"run {one.batch_id} is live" for one in world.airflow.runs.values() if one.live]


def _judge(world: World) -> None:
    world.looks.thorough()
    for batch in world.looks.batches():
        deliveries.judge(world.looks, batch, world.written)


def _once_more(world: World) -> None:
    """Every task, every duty and every job again, after the end: it changes nothing that anybody can see."""
    before = {name: world.looks.rows(query) for name, query in _STANDS.items()}
    shown = dict(world.objects.data)
    for batch in world.looks.batches():
        run = SimRun(batch["id"])
        partitions = world.looks.rows(f"SELECT number FROM partitions WHERE batch_id = '{batch['id']}'")
        run.expand([row["number"] for row in partitions])
        for key in sorted(run.tasks, key=lambda one: (STAGES.index(one[0]), one[1] or 0)):
            world.act(world.task_name(run, key), _again(world, run, key))
    for job in world.jobs:
        job.exit = None
        SimJob.step(job, world.written)
    for name in DUTIES:
        world.act(f"duty {name}", world.keeper[name])
    if world.violation is not None:
        raise world.violation
    changed = [name for name, query in _STANDS.items() if world.looks.rows(query) != before[name]]
    files = [
        key for key, data in shown.items() if key.startswith("files/") and world.objects.data.get(key) != data
    ]
    if changed or files:
        raise Violation(f"After the end everything came once more, and changed {changed} {files}.")
    _judge(world)


def _again(world: World, run: SimRun, key: tuple[str, int | None]) -> Callable[[], str]:
    return lambda: world.bodies.run(run, key)
