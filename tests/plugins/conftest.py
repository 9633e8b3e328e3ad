"""Airflow is imported in the tests' own process, with a home of its own and its warnings let be."""

import warnings
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home for Airflow, told to it while it is imported: nothing of it stays for programs that other tests start."""
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("AIRFLOW_HOME", str(home))
        patch.setenv("_AIRFLOW__AS_LIBRARY", "1")
        warnings.simplefilter("ignore")
        import airflow.sdk
        import airflow.triggers.base  # noqa: F401  # what our modules import
    return home
