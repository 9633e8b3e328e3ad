"""The keeper forgets traces of creates."""

import pytest
from sqlalchemy import select

from gridline.batches import repeats
from gridline.batches.repeats import Sent
from gridline.batches.requests import CreateRequest
from gridline.batches.tables import Batch, IdempotencyKey
from gridline.db.work import unit_of_work
from gridline.keeper.__main__ import duties
from gridline.keeper.forgetting import forget
from tests.gridline.capacity.yard import Yard
from tests.gridline.keeper.fake_airflow import FakeAirflow


def test_one_step_forgets_everything_old(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step goes on over many transactions until no old trace is left, and keeps the young ones."""
    monkeypatch.setattr(repeats, "FORGET_ROWS_MAX", 2)
    batch_id = yard.batch(yard.account("a"))
    request = CreateRequest("file-1", "/v1/chat/completions", "24h", None, None)
    for count, hours in ((5, 49), (1, 0)):
        with unit_of_work() as work:
            batch = work.session.get_one(Batch, batch_id)
            for number in range(count):
                repeats.remember(work, batch, request=request, sent=Sent(key=f"{hours}.{number}"))
        yard.clock.advance(hours=hours)
    assert forget() == 5
    with unit_of_work() as work:
        assert work.session.scalars(select(IdempotencyKey.key)).all() == ["0.0"]


def test_forgetting_is_a_duty(fake: FakeAirflow) -> None:
    """The keeper that is started forgets, about once a minute."""
    assert [duty.every_seconds for duty in duties(fake.client()) if duty.name == "forget"] == [60]
