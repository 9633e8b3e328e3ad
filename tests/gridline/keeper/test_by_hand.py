from dataclasses import replace
from pathlib import Path

import pytest

from gridline.batches import finishing
from gridline.errors import SettingInvalid
from gridline.keeper import by_hand
from gridline.keeper.airflow import Airflow
from gridline.settings import read_settings
from tests.gridline.capacity.yard import Yard
from tests.gridline.keeper.fake_airflow import FakeAirflow


def test_reconciling_by_hand_does_what_the_keeper_does(
    yard: Yard, fake: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch whose run is over is ended, once, however often and beside whom it is done."""
    batch = yard.batch(yard.account("a"))
    fake.run(batch, "failed")
    monkeypatch.setattr(Airflow, "of", lambda config: fake.client())
    assert (by_hand.reconcile(), by_hand.reconcile()) == (1, 0)
    assert finishing.finish(batch, run_over=True) == yard.row(batch).status == "failed"


def test_sweeping_by_hand_says_what_it_swept(yard: Yard) -> None:
    """Every sweep of the keeper is in it, each with its count."""
    assert by_hand.sweep() == {"uploads": 0, "retention": 0, "orphans": 0, "traces of creates": 0}


def test_a_machine_without_the_password_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tasks run without the keeper's secret, reconciling by hand names it and touches nothing."""
    monkeypatch.setattr(by_hand, "settings", lambda: replace(read_settings({}), state_dir=tmp_path))
    with pytest.raises(SettingInvalid, match="GRIDLINE_AIRFLOW_PASSWORD"):
        by_hand.reconcile()
