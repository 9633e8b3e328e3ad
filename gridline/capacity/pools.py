"""GPU pools as the operator states them in GRIDLINE_POOLS: read, checked, and kept as rows. Grants nothing."""

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import update
from sqlalchemy.dialects.postgresql import insert

from gridline.capacity.tables import Pool
from gridline.db.work import Work
from gridline.errors import SettingInvalid

EVERY_MODEL = "*"

_SHAPE = '{"name": "local", "gpus": 1, "models": ["*"], "datacenter": false}'
_AWS_SHAPE = '{"job_queue": "gpus", "job_definition": "gridline-gpu", "region": "eu-central-1"}'


@dataclass(frozen=True)
class AwsBatch:
    """Where a pool's jobs are submitted to: names or ARNs. Without a region it is AWS's own default."""

    job_queue: str
    job_definition: str
    region: str = ""


@dataclass(frozen=True)
class PoolSetting:
    """One pool: leases at once, the models it serves (``*``: every one), and whether its hosts stand in a datacenter.

    With ``aws_batch`` its jobs are AWS Batch jobs, else subprocesses of the task.
    """

    name: str
    gpus: int
    models: tuple[str, ...]
    datacenter: bool
    aws_batch: AwsBatch | None = None


def seed(work: Work, pools_json: str) -> None:
    """Make the rows equal to the setting. A pool that is gone from it keeps its row, and its leases, with 0 GPUs."""
    pools = parse(pools_json)
    for pool in pools:
        values: dict[str, Any] = {
            "gpus": pool.gpus,
            "models": list(pool.models),
            "datacenter": pool.datacenter,
        }
        work.session.execute(
            insert(Pool)
            .values(name=pool.name, **values)
            .on_conflict_do_update(index_elements=["name"], set_=values)
        )
    gone = Pool.name.not_in([pool.name for pool in pools])
    work.session.execute(update(Pool).where(gone).values(gpus=0))
    work.notify("capacity")


def parse(pools_json: str) -> list[PoolSetting]:
    """The pools that the setting's text states.

    Raises:
        SettingInvalid: not a JSON list of pools with name, gpus, models and datacenter, or a name used twice.
    """
    try:
        stated = json.loads(pools_json)
    except ValueError as error:
        raise SettingInvalid(f"GRIDLINE_POOLS is not JSON: {error}.") from error
    if not isinstance(stated, list):
        raise SettingInvalid(f"GRIDLINE_POOLS is a JSON list of pools such as {_SHAPE}.")
    pools = [_pool(one) for one in stated]
    if len({pool.name for pool in pools}) != len(pools):
        raise SettingInvalid("GRIDLINE_POOLS names a pool twice.")
    return pools


def aws_batch_of(pools_json: str, pool: str) -> AwsBatch | None:
    """Where that pool's jobs are submitted to; None: they are subprocesses, or the setting no longer names the pool."""
    return next((one.aws_batch for one in parse(pools_json) if one.name == pool), None)


def _pool(stated: Any) -> PoolSetting:
    rest = (
        {name: value for name, value in stated.items() if name != "aws_batch"} if _is_object(stated) else {}
    )
    match rest:
        case {"name": str(name), "gpus": int(gpus), "models": [*models], "datacenter": bool(datacenter)} if (
            len(rest) == 4  # noqa: PLR2004  # the pattern's four keys and no other
            and name
            and gpus >= 0
            and not isinstance(gpus, bool)
            and models
            and all(isinstance(one, str) and one for one in models)
        ):
            aws_batch = _aws_batch(name, stated["aws_batch"]) if "aws_batch" in stated else None
            return PoolSetting(name, gpus, tuple(models), datacenter, aws_batch=aws_batch)
    raise SettingInvalid(
        f'GRIDLINE_POOLS: a pool looks like {_SHAPE}, with "aws_batch" where its jobs run there, got {json.dumps(stated)}.'
    )


def _aws_batch(pool: str, stated: Any) -> AwsBatch:
    needed, known = {"job_queue", "job_definition"}, {"job_queue", "job_definition", "region"}
    texts = _is_object(stated) and all(isinstance(one, str) and one for one in stated.values())
    if not (texts and needed <= set(stated) <= known):
        raise SettingInvalid(
            f'GRIDLINE_POOLS: "aws_batch" of the pool {pool!r} looks like {_AWS_SHAPE} (region may be left out), '
            f"got {json.dumps(stated)}."
        )
    return AwsBatch(**stated)


def _is_object(stated: Any) -> bool:
    return isinstance(stated, dict)
