"""Pools as the setting states them."""

import json

import pytest
from sqlalchemy import select

from gridline.capacity import pools, reading
from gridline.capacity.pools import AwsBatch
from gridline.capacity.tables import Pool
from gridline.db.work import Work
from gridline.errors import SettingInvalid
from gridline.settings import Settings


def test_seeding_follows_the_setting(work: Work) -> None:
    """A pool is made, changed, and emptied when it is gone; its row stays for the leases that name it."""
    pools.seed(work, Settings().pools)
    assert [(one.name, one.gpus) for one in reading.pools(work)] == [("local", 1)]
    pools.seed(work, '[{"name": "local", "gpus": 3, "models": ["a"], "datacenter": true}]')
    pools.seed(work, '[{"name": "h200", "gpus": 8, "models": ["*"], "datacenter": true}]')
    rows = work.session.scalars(select(Pool).order_by(Pool.name).execution_options(populate_existing=True))
    assert [(one.name, one.gpus, one.models, one.datacenter) for one in rows] == [
        ("h200", 8, ["*"], True),
        ("local", 0, ["a"], True),
    ]


GOOD = '{"name": "a", "gpus": 1, "models": ["*"], "datacenter": false}'


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "{}",
        "[1]",
        '[{"name": "a", "gpus": 1, "models": ["*"]}]',
        '[{"name": "a", "gpus": -1, "models": ["*"], "datacenter": false}]',
        '[{"name": "a", "gpus": true, "models": ["*"], "datacenter": false}]',
        '[{"name": "a", "gpus": 1, "models": [], "datacenter": false}]',
        '[{"name": "a", "gpus": 1, "models": [7], "datacenter": false}]',
        '[{"name": "a", "gpus": 1, "models": ["*"], "datacenter": false, "typo": 1}]',
        f"[{GOOD}, {GOOD}]",
    ],
)
def test_a_setting_that_is_no_list_of_pools_is_refused(text: str) -> None:
    """What cannot be understood whole is refused with an example, never half taken."""
    with pytest.raises(SettingInvalid, match="GRIDLINE_POOLS"):
        pools.parse(text)


def on_aws(aws_batch: object) -> str:
    """One pool with this under its key."""
    return json.dumps(
        [{"name": "spot", "gpus": 8, "models": ["*"], "datacenter": True, "aws_batch": aws_batch}]
    )


def test_a_pool_says_where_its_jobs_run() -> None:
    """A pool with a queue and a job definition runs its jobs there, any other one as subprocesses."""
    queue = {"job_queue": "gpus", "job_definition": "gridline-gpu:3"}
    both = json.dumps([json.loads(GOOD), *json.loads(on_aws(queue))])
    assert pools.aws_batch_of(both, "spot") == AwsBatch("gpus", "gridline-gpu:3", region="")
    assert pools.aws_batch_of(both, "a") is None
    assert pools.aws_batch_of(both, "gone") is None
    elsewhere = on_aws(queue | {"region": "eu-central-1"})
    assert pools.aws_batch_of(elsewhere, "spot") == AwsBatch("gpus", "gridline-gpu:3", region="eu-central-1")


def test_a_pools_place_is_no_matter_of_the_database(work: Work) -> None:
    """The rows are the same wherever a pool's jobs run."""
    pools.seed(work, on_aws({"job_queue": "q", "job_definition": "d"}))
    assert [(one.name, one.gpus) for one in reading.pools(work)] == [("spot", 8)]


@pytest.mark.parametrize(
    "aws_batch",
    [
        None,
        "gpus",
        {},
        {"job_queue": "gpus"},
        {"job_queue": "gpus", "job_definition": ""},
        {"job_queue": "gpus", "job_definition": 3},
        {"job_queue": "gpus", "job_definition": "d", "regoin": "eu-central-1"},
    ],
)
def test_a_place_that_is_none_is_refused(aws_batch: object) -> None:
    """Half a place is refused with the pool's name and an example, since it would be found out only by a job."""
    with pytest.raises(SettingInvalid, match=r"of the pool 'spot' looks like .*job_definition"):
        pools.parse(on_aws(aws_batch))
