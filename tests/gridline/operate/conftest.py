"""A state folder whose path is short enough for Unix sockets, whatever the test's name and worker."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gridline.lines.conftest import models_folder

__all__ = ["models_folder"]  # a fixture: tiny models with real tokenizers


@pytest.fixture
def state_dir() -> Iterator[Path]:
    """An empty folder directly under the system's temporary one."""
    folder = Path(tempfile.mkdtemp(prefix="gl-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
