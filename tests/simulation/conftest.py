"""Lives of seeds on the session's database."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.gridline.lines.conftest import models_folder
from tests.simulation.history import History
from tests.simulation.life import live

__all__ = ["models_folder"]

Live = Callable[[int], History]


@pytest.fixture
def live_seed(database: Engine, owner_engine: Engine, models_folder: Path) -> Live:
    """Lives one seed from its first step to its end."""
    return lambda seed: live(seed, engine=database, owner=owner_engine, models=models_folder)
