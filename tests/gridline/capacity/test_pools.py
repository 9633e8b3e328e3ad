"""Pools as the setting states them."""

import pytest
from sqlalchemy import select

from gridline.capacity import pools, reading
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
